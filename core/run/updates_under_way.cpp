#include "run/updates_under_way.hpp"

#include <algorithm>
#include <array>

namespace shardmark {

UpdatesUnderWay::UpdatesUnderWay(int updates, std::int64_t numbers, std::int64_t first, Arena& arena, Stream& stream)
    : updates_(updates), first_(first), parts_(make(DType::f64, Shape{&numbers, 1}, Book::workspace, arena, stream)) {}

void UpdatesUnderWay::share(UnitId unit, DType dtype, std::int64_t holders, std::int64_t elements, Arena& arena, Stream& stream) {
  std::array<std::int64_t, 2> const shape{holders, elements};
  shared_.push_back({unit, make(dtype, Shape{shape.data(), shape.size()}, Book::communication, arena, stream)});
}

UpdatesUnderWay::Ring UpdatesUnderWay::make(DType dtype, Shape shape, Book book, Arena& arena, Stream& stream) const {
  Ring ring{{}, first_};
  for (int i = 0; i < updates_; ++i) ring.places.push_back(arena.make(dtype, shape, book, stream));
  return ring;
}

UpdatesUnderWay::Shared& UpdatesUnderWay::slots_of(UnitId unit) {
  auto const at = std::ranges::find(shared_, unit, &Shared::unit);
  expect(at != shared_.end(), "this lane shares no such tied unit");
  return *at;
}

}  // namespace shardmark
