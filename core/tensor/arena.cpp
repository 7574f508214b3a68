#include "tensor/arena.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <memory_resource>
#include <vector>

namespace shardmark {
namespace {

constexpr std::size_t alignment = 64;
constexpr unsigned streams = 32;

/// Memory that was given back while a stream may still work on it.
struct Cooling {
  std::size_t begin, end;
  Event event;
};

}  // namespace

struct Arena::State {
  explicit State(Region s, Ledger& l) : slab(s), ledger(&l), used(&pool) { cooling.reserve(1024); }

  Region slab;
  Ledger* ledger;
  std::pmr::unsynchronized_pool_resource pool;
  std::pmr::map<std::size_t, std::size_t> used;  // offset -> bytes
  std::vector<Cooling> cooling;
  std::array<Stream*, streams> seen{};
  std::size_t high_water = 0;
  std::uint64_t hash = stream_seed;
  static constexpr std::uint64_t stream_seed = 14695981039346656037ull;

  void mix(std::uint64_t value) { hash = (hash ^ value) * 1099511628211ull; }

  std::size_t place(std::size_t bytes) {
    std::size_t at = 0;
    for (auto const& [offset, size] : used) {
      if (offset - at >= bytes) break;
      at = offset + size;
    }
    if (at + bytes > slab.bytes)
      throw RankFailure(fmt::format("the memory planned for this rank is full ({} bytes needed at {} of {}); plan --dry-run shows the need",
                                    bytes, at, slab.bytes));
    used.emplace(at, bytes);
    high_water = std::max(high_water, at + bytes);
    return at;
  }

  void wait_for_last_use(std::size_t begin, std::size_t end, Stream& first_use) {
    std::erase_if(cooling, [&](Cooling const& c) {
      if (c.event.on->done(c.event)) return true;
      if (c.begin < end && begin < c.end && c.event.on != &first_use) first_use.wait(c.event);
      return false;
    });
  }

  void give_back(Region const& region, std::size_t at, std::size_t bytes) {
    for (unsigned i = 0; i < streams; ++i) {
      if ((region.touched_by >> i & 1) == 0) continue;
      invariant(seen[i] != nullptr, "memory was used by a stream that the arena doesn't watch");
      Event const event = seen[i]->record();
      if (!seen[i]->done(event)) cooling.push_back({at, at + bytes, event});
    }
    used.erase(at);
    ledger->book(region.book, -std::int64_t(bytes));
  }
};

Arena::Arena(Region slab, Ledger& ledger) : state_(std::make_shared<State>(slab, ledger)) {}

Tensor Arena::make(DType dtype, Shape shape, Book book, Stream& first_use) {
  std::int64_t n = 1;
  for (auto d : shape) n *= d;
  // An empty tensor still gets an address of its own, so that it can be told apart.
  std::size_t const bytes = std::max<std::size_t>(alignment, (std::size_t(n) * width(dtype) + alignment - 1) / alignment * alignment);
  State& state = *state_;
  std::size_t const at = state.place(bytes);
  expect(state.seen[first_use.index()] == &first_use, "the arena doesn't watch this stream");
  state.wait_for_last_use(at, at + bytes, first_use);
  state.ledger->book(book, std::int64_t(bytes));
  state.mix(at);
  state.mix(bytes);

  struct GiveBack {
    std::shared_ptr<State> state;
    std::size_t at, bytes;
    void operator()(Region* region) const {
      state->give_back(*region, at, bytes);
      std::pmr::polymorphic_allocator<Region>(&state->pool).deallocate(region, 1);
    }
  };
  std::pmr::polymorphic_allocator<Region> allocator(&state.pool);
  Region* region = new (allocator.allocate(1)) Region{state.slab.data + at, bytes, state.slab.place, book, 1u << first_use.index()};
  Tensor out;
  out.storage = Storage(region, GiveBack{state_, at, bytes}, allocator);
  out.view = view_at(region->data, region, dtype, shape);
  return out;
}

void Arena::watch(Stream& stream) {
  expect(stream.index() < streams, "too many streams");
  state_->seen[stream.index()] = &stream;
}

std::uint64_t Arena::sequence_hash() const { return state_->hash; }
void Arena::restart_hash() { state_->hash = State::stream_seed; }
std::size_t Arena::high_water() const { return state_->high_water; }
Ledger& Arena::ledger() const { return *state_->ledger; }

}  // namespace shardmark
