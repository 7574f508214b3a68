#include "comm/mpi/rounds.hpp"

#include <algorithm>
#include <cstring>

#include "comm/fixed_tree.hpp"

namespace shardmark::mpi {
namespace {

constexpr std::size_t alignment = 64;

}  // namespace

Rounds::Rounds(MPI_Comm comm, int me, int members, std::size_t round_bytes, std::size_t chunk_bytes, std::pmr::memory_resource* pool)
    : comm_(comm),
      me_(me),
      members_(members),
      scratch_bytes_(std::max(round_bytes, std::size_t(members) * alignment)),
      chunk_bytes_(chunk_bytes),
      lanes_{Lane{.scratch = nullptr, .transfers = Transfers(pool)}, Lane{.scratch = nullptr, .transfers = Transfers(pool)}},
      inputs_(std::size_t(members)) {}

void Rounds::begin(RoundTask const& task) {
  task_ = task;
  for (Lane& lane : lanes_)
    if (lane.scratch == nullptr) lane.scratch = std::make_unique_for_overwrite<std::byte[]>(scratch_bytes_);
  std::size_t const per_rank = scratch_bytes_ / std::size_t(members_) / alignment * alignment;
  limit_ = std::int64_t(std::max(std::size_t{1}, std::min(per_rank, chunk_bytes_) / width(task.dtype)));
  std::int64_t const longest = slice(0).size();  // earlier slices are never shorter
  rounds_ = (longest + limit_ - 1) / limit_;
  for (std::size_t i = 0; i < lanes_.size(); ++i) lanes_[i].next = std::int64_t(i);
  if (rounds_ == 0) task_.reset();
}

Range Rounds::slice(int rank) const {
  if (task_->what == Collective::all_reduce) return piece_of(task_->elements, members_, rank);
  return {rank * task_->elements, (rank + 1) * task_->elements};
}

Range Rounds::chunk(int rank, std::int64_t round) const { return nth_chunk(slice(rank), limit_, round); }

std::byte* Rounds::arrived(Lane& lane, int from) const { return lane.scratch.get() + std::size_t(from) * bytes(limit_); }

bool Rounds::advance() {
  if (!task_) return false;
  bool moved = false;
  for (Lane& lane : lanes_) {
    if (lane.state == Lane::State::idle && lane.next < rounds_) {
      lane.round = lane.next;
      lane.next += std::int64_t(lanes_.size());
      exchange(lane);
      moved = true;
    }
    moved |= advance(lane);
  }
  auto const finished = [&](Lane const& lane) { return lane.state == Lane::State::idle && lane.next >= rounds_; };
  if (std::all_of(lanes_.begin(), lanes_.end(), finished)) task_.reset();
  return moved;
}

bool Rounds::advance(Lane& lane) {
  if (lane.state == Lane::State::idle || !lane.transfers.done()) return false;
  lane.transfers.clear();
  if (lane.state == Lane::State::exchanging) {
    combine(lane);
    if (task_->what == Collective::all_reduce) {
      distribute(lane);
      return true;
    }
  }
  lane.state = Lane::State::idle;
  return true;
}

void Rounds::exchange(Lane& lane) {
  lane.state = Lane::State::exchanging;
  std::size_t const mine = bytes(chunk(me_, lane.round).size());
  for (int peer = 0; peer < members_; ++peer)
    if (peer != me_ && mine > 0) lane.transfers.receive(arrived(lane, peer), mine, peer, tag(lane, 0), comm_, chunk_bytes_);
  for (int step = 1; step < members_; ++step) {
    int const peer = (me_ + step) % members_;  // not everybody to rank 0 first
    Range const theirs = chunk(peer, lane.round);
    if (theirs.size() > 0)
      lane.transfers.send(task_->send + bytes(theirs.begin), bytes(theirs.size()), peer, tag(lane, 0), comm_, chunk_bytes_);
  }
}

void Rounds::combine(Lane& lane) {
  Range const mine = chunk(me_, lane.round);
  if (task_->what == Collective::all_to_all) {
    // Everything of this round has left, so what arrived can take its place.
    for (int peer = 0; peer < members_; ++peer)
      if (peer != me_) std::memcpy(task_->recv + bytes(chunk(peer, lane.round).begin), arrived(lane, peer), bytes(mine.size()));
    return;
  }
  for (int peer = 0; peer < members_; ++peer)
    inputs_[std::size_t(peer)] = peer == me_ ? task_->send + bytes(mine.begin) : arrived(lane, peer);
  std::int64_t const at = task_->what == Collective::all_reduce ? mine.begin : mine.begin - slice(me_).begin;
  sum_fixed_tree(task_->dtype, inputs_, task_->recv + bytes(at), mine.size());
}

void Rounds::distribute(Lane& lane) {
  lane.state = Lane::State::distributing;
  Range const mine = chunk(me_, lane.round);
  for (int peer = 0; peer < members_; ++peer) {
    Range const theirs = chunk(peer, lane.round);
    if (peer != me_ && theirs.size() > 0)
      lane.transfers.receive(task_->recv + bytes(theirs.begin), bytes(theirs.size()), peer, tag(lane, 1), comm_, chunk_bytes_);
  }
  for (int step = 1; step < members_; ++step)
    if (mine.size() > 0)
      lane.transfers.send(task_->recv + bytes(mine.begin), bytes(mine.size()), (me_ + step) % members_, tag(lane, 1), comm_, chunk_bytes_);
}

void Rounds::drop() noexcept {
  for (Lane& lane : lanes_) lane.transfers.drop();
}

}  // namespace shardmark::mpi
