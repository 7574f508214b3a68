#pragma once
// Equal pieces of units over the data-parallel ranks: a unit is padded to a multiple of their number, and a piece may begin and end
// inside a tensor (ZeRO: Rajbhandari et al., SC 2020).

#include <algorithm>
#include <cstdint>

#include "base/ranges.hpp"
#include "schedule/schedule.hpp"

namespace shardmark {

struct Shards {
  Sharing sharing = Sharing::replicated;
  int count = 1;  // of pieces; 1 with Sharing::replicated
  int mine = 0;

  std::int64_t piece(std::int64_t elements) const {
    if (sharing == Sharing::root) return mine == 0 ? elements : 0;
    return (elements + count - 1) / count;
  }
  std::int64_t padded(std::int64_t elements) const { return sharing == Sharing::root ? elements : piece(elements) * count; }
  /// What this rank updates of a unit, without padding; the whole unit when nothing is shared.
  Range own(std::int64_t elements) const {
    std::int64_t const begin = std::min(elements, mine * piece(elements));
    return {begin, std::min(elements, begin + piece(elements))};
  }
  /// Sums of gradients are kept in pieces.
  bool cut_gradients() const { return sharing == Sharing::gradients || sharing == Sharing::parameters; }
  /// Weights are kept in pieces, and gathered.
  bool cut_weights() const { return sharing == Sharing::parameters; }
};

}  // namespace shardmark
