#include "comm/peer/collectives.hpp"

#include <fmt/format.h>

#include <cstring>

namespace shardmark::peer {
namespace {

constexpr std::size_t share_limit = std::size_t{256} << 10;  // bytes that one advance() works on

}  // namespace

Collectives::Collectives(Board board, AddressSpace space, int me, std::pmr::memory_resource* pool)
    : board_(board),
      space_(space),
      me_(me),
      queue_(pool),
      draining_(pool),
      all_(std::size_t(board.members())),
      members_(std::size_t(board.members())),
      inputs_(std::size_t(board.members())) {}

void Collectives::post(Posted* owner, Exchange const& exchange) {
  int const n = board_.members();
  PieceCounts const pieces = piece_counts(exchange.what, n, me_, exchange.root);
  View recv = exchange.recv.view;
  View send = exchange.send ? exchange.send.view : recv;  // a broadcast's root may have the data in place
  if (pieces.recv == 0) recv = {};
  if (pieces.send == 0) send = {};
  View const& any = recv ? recv : send;
  std::int64_t const elements = any.elements() / (recv ? pieces.recv : pieces.send);
  Published const mine{.send = space_.offset_of(send.data),
                       .recv = space_.offset_of(recv.data),
                       .elements = elements,
                       .root = exchange.root,
                       .what = exchange.what,
                       .dtype = any.dtype,
                       .reachable = space_.reaches(send.data, send.bytes()) && space_.reaches(recv.data, recv.bytes())};
  queue_.push_back({owner, posted_++, mine, {send.data, recv.data}});
}

bool Collectives::advance() {
  bool moved = publish();
  if (!queue_.empty()) {
    Job& job = queue_.front();
    if (job.published && !job.started && all_published(job.index)) start(job);
    if (job.started) {
      Result const result = job.staged ? run_staged(job) : run_direct(job);
      moved |= result != Result::blocked;
      if (result == Result::finished) queue_.pop_front();
    }
  }
  while (!draining_.empty() && all_did(draining_.front().steps)) {
    finish(draining_.front().owner);
    draining_.pop_front();
    moved = true;
  }
  return moved;
}

bool Collectives::publish() {
  bool any = false;
  for (Job& job : queue_) {
    if (job.published) continue;
    for (int r = 0; r < board_.members(); ++r)
      if (board_.of(r).read.load(std::memory_order_acquire) + collectives_in_flight <= job.index) return any;
    board_.of(me_).published[job.index % collectives_in_flight] = job.mine;
    board_.of(me_).posted.store(job.index + 1, std::memory_order_release);
    job.published = any = true;
  }
  return any;
}

bool Collectives::all_published(std::uint64_t index) const {
  for (int r = 0; r < board_.members(); ++r)
    if (board_.of(r).posted.load(std::memory_order_acquire) <= index) return false;
  return true;
}

bool Collectives::all_did(std::uint64_t steps) const {
  for (int r = 0; r < board_.members(); ++r)
    if (board_.of(r).steps.load(std::memory_order_acquire) < steps) return false;
  return true;
}

void Collectives::step() { board_.of(me_).steps.store(++steps_, std::memory_order_release); }

void Collectives::finish(Posted* owner) {
  if (owner != nullptr) owner->piece_done();
}

void Collectives::start(Job& job) {
  for (int r = 0; r < board_.members(); ++r) {
    Published const& theirs = all_[std::size_t(r)] = board_.of(r).published[job.index % collectives_in_flight];
    if (theirs.what != job.mine.what || theirs.elements != job.mine.elements || theirs.dtype != job.mine.dtype ||
        theirs.root != job.mine.root)
      throw RankFailure(
          fmt::format("the ranks' collectives differ: rank {} posts {} of {} x {} (root {}), rank {} posts {} of {} x {} (root {})", me_,
                      name(job.mine.what), job.mine.elements, name(job.mine.dtype), job.mine.root, r, name(theirs.what), theirs.elements,
                      name(theirs.dtype), theirs.root));
    job.staged |= !theirs.reachable;
    members_[std::size_t(r)] = {space_.at(theirs.send), space_.at(theirs.recv)};
  }
  board_.of(me_).read.store(job.index + 1, std::memory_order_release);
  job.started = true;
  if (job.staged) {
    for (int r = 0; r < board_.members(); ++r)
      members_[std::size_t(r)] = {board_.staging(r, staging_blocks), board_.staging(r, staging_blocks + 1)};
  } else {
    job.at = share_of({job.mine.what, job.mine.dtype, job.mine.root, job.mine.elements}, me_, board_.members()).begin;
  }
}

Collectives::Result Collectives::run_direct(Job& job) {
  Task const task{job.mine.what, job.mine.dtype, job.mine.root, job.mine.elements};
  std::int64_t const end = share_of(task, me_, board_.members()).end;
  std::int64_t const limit = std::max<std::int64_t>(1, std::int64_t(share_limit / width(task.dtype)));
  Range const range{job.at, std::min(end, job.at + limit)};
  do_share(task, me_, members_, range, inputs_);
  job.at = range.end;
  if (job.at < end) return Result::moved;
  step();
  draining_.push_back({job.owner, steps_});
  return Result::finished;
}

std::int64_t Collectives::staged_elements(Job const& job) const {
  auto const largest = std::int64_t(staging_bytes / (std::size_t(board_.members()) * width(job.mine.dtype)));
  return std::min(largest, job.mine.elements - job.at);
}

Collectives::Result Collectives::run_staged(Job& job) {
  Range const range{job.at, job.at + staged_elements(job)};
  // A peer's staging is read only between two steps of everybody, so nobody refills a block that is still read.
  if (job.phase != Job::Phase::copy_in && !all_did(steps_)) return Result::blocked;
  switch (job.phase) {
    case Job::Phase::copy_in:
      copy_in(job, range);
      step();
      job.phase = Job::Phase::share;
      return Result::moved;
    case Job::Phase::share: {
      Task const task{job.mine.what, job.mine.dtype, job.mine.root, range.size()};
      do_share(task, me_, members_, share_of(task, me_, board_.members()), inputs_);
      step();
      job.phase = Job::Phase::copy_out;
      return Result::moved;
    }
    case Job::Phase::copy_out:
      break;
  }
  copy_out(job, range);
  job.at = range.end;
  job.phase = Job::Phase::copy_in;
  if (job.at < job.mine.elements) return Result::moved;
  finish(job.owner);
  return Result::finished;
}

void Collectives::copy_in(Job const& job, Range range) {
  std::size_t const w = width(job.mine.dtype), bytes = std::size_t(range.size()) * w;
  int const pieces = piece_counts(job.mine.what, board_.members(), me_, job.mine.root).send;
  for (int p = 0; p < pieces; ++p)
    std::memcpy(members_[std::size_t(me_)].send + std::size_t(p) * bytes,
                job.buffers.send + std::size_t(p * job.mine.elements + range.begin) * w, bytes);
}

void Collectives::copy_out(Job const& job, Range range) {
  std::size_t const w = width(job.mine.dtype), bytes = std::size_t(range.size()) * w;
  int const pieces = piece_counts(job.mine.what, board_.members(), me_, job.mine.root).recv;
  for (int p = 0; p < pieces; ++p)
    std::memcpy(job.buffers.recv + std::size_t(p * job.mine.elements + range.begin) * w,
                members_[std::size_t(me_)].recv + std::size_t(p) * bytes, bytes);
}

}  // namespace shardmark::peer
