#include "comm/peer/share.hpp"

#include <algorithm>
#include <array>
#include <cstring>

#include "comm/fixed_tree.hpp"

namespace shardmark::peer {
namespace {

constexpr std::size_t block_bytes = std::size_t{16} << 10;  // stays in the first cache level between the sum and its copies

void copy_bytes(std::byte* to, std::byte const* from, std::size_t bytes) {
  if (to != from && bytes > 0) std::memcpy(to, from, bytes);
}

/// A share in bytes: piece p of a buffer starts at p * piece.
struct Span {
  std::size_t piece, at, bytes;
  std::byte* in(std::byte* buffer, int p) const { return buffer + std::size_t(p) * piece + at; }
};

/// Sums piece `p` of every member's send into `recv` of the members in [first, last).
void sum(Task const& task, std::span<Buffers const> members, Span s, int p, int first, int last, std::span<std::byte const*> inputs) {
  std::array<std::byte, block_bytes> total;
  for (std::size_t done = 0; done < s.bytes; done += block_bytes) {
    std::size_t const bytes = std::min(block_bytes, s.bytes - done);
    for (std::size_t m = 0; m < members.size(); ++m) inputs[m] = s.in(members[m].send, p) + done;
    sum_fixed_tree(task.dtype, inputs, total.data(), std::int64_t(bytes / width(task.dtype)));
    for (int m = first; m < last; ++m) std::memcpy(s.in(members[std::size_t(m)].recv, 0) + done, total.data(), bytes);
  }
}

/// Two members' pieces for each other change places, by way of a block, so that in place works; one of the two does both directions.
void swap(Buffers const& a, int rank_a, Buffers const& b, int rank_b, Span s) {
  std::array<std::byte, block_bytes> from_a;
  for (std::size_t done = 0; done < s.bytes; done += block_bytes) {
    std::size_t const bytes = std::min(block_bytes, s.bytes - done);
    std::memcpy(from_a.data(), s.in(a.send, rank_b) + done, bytes);
    std::memcpy(s.in(a.recv, rank_b) + done, s.in(b.send, rank_a) + done, bytes);
    std::memcpy(s.in(b.recv, rank_a) + done, from_a.data(), bytes);
  }
}

void all_to_all(int me, std::span<Buffers const> members, Span s) {
  Buffers const& mine = members[std::size_t(me)];
  copy_bytes(s.in(mine.recv, me), s.in(mine.send, me), s.bytes);
  for (int other = 0; other < int(members.size()); ++other) {
    // The lower rank does the pairs with an even sum, the higher those with an odd one: about half each.
    bool const do_it = other != me && (((me + other) % 2 == 0) == (me < other));
    if (do_it) swap(mine, me, members[std::size_t(other)], other, s);
  }
}

}  // namespace

Range share_of(Task const& task, int me, int members) {
  return task.what == Collective::all_reduce ? piece_of(task.elements, members, me) : Range{0, task.elements};
}

void do_share(Task const& task, int me, std::span<Buffers const> members, Range range, std::span<std::byte const*> inputs) {
  std::size_t const w = width(task.dtype);
  Span const s{std::size_t(task.elements) * w, std::size_t(range.begin) * w, std::size_t(range.size()) * w};
  int const n = int(members.size());
  Buffers const &mine = members[std::size_t(me)], &root = members[std::size_t(task.root)];
  switch (task.what) {
    case Collective::broadcast:
      return copy_bytes(s.in(mine.recv, 0), s.in(root.send, 0), s.bytes);
    case Collective::all_reduce:
      return sum(task, members, s, 0, 0, n, inputs);
    case Collective::reduce_scatter:
      return sum(task, members, s, me, me, me + 1, inputs);
    case Collective::all_gather:
      for (int p = 0; p < n; ++p) copy_bytes(s.in(mine.recv, p), s.in(members[std::size_t(p)].send, 0), s.bytes);
      return;
    case Collective::all_to_all:
      return all_to_all(me, members, s);
    case Collective::gather:
      for (int p = 0; p < n && me == task.root; ++p) copy_bytes(s.in(mine.recv, p), s.in(members[std::size_t(p)].send, 0), s.bytes);
      return;
    case Collective::scatter:
      return copy_bytes(s.in(mine.recv, 0), s.in(root.send, me), s.bytes);
  }
}

}  // namespace shardmark::peer
