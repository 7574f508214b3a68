#pragma once
// How a sum of N elements is shared among n ranks, and how long messages are cut.

#include <algorithm>
#include <cstdint>

#include "base/ranges.hpp"
#include "base/types.hpp"

namespace shardmark {

/// The `round`-th run of at most `limit` elements in `whole`; empty past its end.
inline Range nth_chunk(Range whole, std::int64_t limit, std::int64_t round) {
  std::int64_t const begin = std::min(whole.end, whole.begin + round * limit);
  return {begin, std::min(whole.end, begin + limit)};
}

/// How many chunks of at most `limit` hold `elements`; an empty message is one.
constexpr std::int64_t chunk_count(std::int64_t elements, std::int64_t limit) { return elements == 0 ? 1 : (elements + limit - 1) / limit; }

/// Pieces of N elements that a member sends and receives in a collective of n members.
struct PieceCounts {
  int send = 0, recv = 0;
};
constexpr PieceCounts piece_counts(Collective what, int members, int me, int root) {
  switch (what) {
    case Collective::broadcast:
      return {me == root ? 1 : 0, 1};
    case Collective::all_reduce:
      return {1, 1};
    case Collective::reduce_scatter:
      return {members, 1};
    case Collective::all_gather:
      return {1, members};
    case Collective::all_to_all:
      return {members, members};
    case Collective::gather:
      return {1, me == root ? members : 0};
    case Collective::scatter:
      return {me == root ? members : 0, 1};
  }
  return {};
}

}  // namespace shardmark
