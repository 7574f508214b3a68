#pragma once
// One rank's share of a collective in which it reaches all members' memory.

#include <cstdint>
#include <span>

#include "comm/slices.hpp"

namespace shardmark::peer {

/// A member's tensors, at this rank's addresses; null where absent.
struct Buffers {
  std::byte* send = nullptr;
  std::byte* recv = nullptr;
};

/// A collective of pieces of `elements` elements.
struct Task {
  Collective what;
  DType dtype;
  int root;
  std::int64_t elements;
};

/// The elements of a piece that this rank works on: its slice of an all-reduce, else all.
Range share_of(Task const& task, int me, int members);

/// Does this rank's share for elements [range.begin, range.end). Shares of different ranks touch different memory, so they run side by side
/// once all members have posted. `inputs` has room for one pointer a member.
void do_share(Task const& task, int me, std::span<Buffers const> members, Range range, std::span<std::byte const*> inputs);

}  // namespace shardmark::peer
