#pragma once
// What a lane holds of updates whose decision is deferred (Schedule::defers), besides their gradients: its part of the decision, which an
// all-reduce over the lanes turns into the whole, and the slots of tied units that an all-gather over their holders brings. Fixed places in
// rings of as many updates as the lane has under way at once.

#include <vector>

#include "base/ids.hpp"
#include "comm/communicator.hpp"

namespace shardmark {

class UpdatesUnderWay {
 public:
  /// @param updates  under way at once
  /// @param numbers  of a part, fp64
  /// @param first    the update (from 0) that comes next
  UpdatesUnderWay(int updates, std::int64_t numbers, std::int64_t first, Arena& arena, Stream& stream);
  /// Room for a tied unit's slots, [holders, elements], before the first one is offered.
  void share(UnitId unit, DType dtype, std::int64_t holders, std::int64_t elements, Arena& arena, Stream& stream);

  /// The update whose part this lane gives next.
  std::int64_t give() { return parts_.next++; }
  /// The update whose slots of `unit` this lane offers next.
  std::int64_t offer(UnitId unit) { return slots_of(unit).ring.next++; }
  Tensor const& part(std::int64_t update) const { return parts_.at(update); }
  Tensor const& slots(UnitId unit, std::int64_t update) { return slots_of(unit).ring.at(update); }

 private:
  struct Ring {
    std::vector<Tensor> places;
    std::int64_t next = 0;
    Tensor const& at(std::int64_t update) const { return places[std::size_t(update) % places.size()]; }
  };
  struct Shared {
    UnitId unit;
    Ring ring;
  };
  Ring make(DType dtype, Shape shape, Book book, Arena& arena, Stream& stream) const;
  Shared& slots_of(UnitId unit);

  int updates_;
  std::int64_t first_;
  Ring parts_;
  std::vector<Shared> shared_;
};

}  // namespace shardmark
