#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <thread>

#include "run/watchdog.hpp"

namespace shardmark {

static_assert(sizeof(StatusLine) == 128 && std::atomic<std::uint64_t>::is_always_lock_free && std::atomic<char>::is_always_lock_free);

std::string_view name(RankState state) {
  switch (state) {
    case RankState::absent:
      return "elsewhere";
    case RankState::starting:
      return "starting";
    case RankState::working:
      return "working";
    case RankState::waiting:
      return "waiting";
    case RankState::done:
      return "done";
    case RankState::failed:
      return "failed";
  }
  return "?";
}

StatusBoard::StatusBoard(StatusLine* lines, int ranks, int me, std::string host)
    : lines_(lines), ranks_(ranks), me_(me), host_(std::move(host)) {
  expect(me >= 0 && me < ranks, "a board has a line for each rank");
  line(me_).process.store(std::int32_t(getpid()), std::memory_order_relaxed);
  RankState absent = RankState::absent;
  line(me_).state.compare_exchange_strong(absent, RankState::starting);
}

void StatusBoard::set(std::int64_t step, RankState state, std::string_view action) {
  StatusLine& mine = line(me_);
  std::uint32_t const sequence = mine.sequence.load(std::memory_order_relaxed);
  std::size_t const length = std::min(action.size(), std::size(mine.text) - 1);
  // A reader that sees one of the new letters (acquire) sees the odd number too: no fence is needed.
  mine.sequence.store(sequence + 1, std::memory_order_relaxed);
  for (std::size_t i = 0; i < length; ++i) mine.text[i].store(action[i], std::memory_order_release);
  mine.text[length].store(0, std::memory_order_release);
  mine.sequence.store(sequence + 2, std::memory_order_release);
  mine.step.store(step, std::memory_order_relaxed);
  mine.state.store(state, std::memory_order_release);
  mine.work.fetch_add(1, std::memory_order_relaxed);
  mine.heartbeat.fetch_add(1, std::memory_order_relaxed);
}

void StatusBoard::beat() {
  StatusLine& mine = line(me_);
  if (mine.state.load(std::memory_order_relaxed) != RankState::waiting) mine.work.fetch_add(1, std::memory_order_relaxed);
  mine.heartbeat.fetch_add(1, std::memory_order_relaxed);
}

void StatusBoard::beat_waiting() { line(me_).heartbeat.fetch_add(1, std::memory_order_relaxed); }

std::string StatusBoard::action(int rank) const {
  StatusLine const& theirs = line(rank);
  std::string text;
  // A rank that was stopped in mid-write stays odd: after a tenth of a second, what is there must do.
  for (int attempt = 0; attempt < 100; ++attempt) {
    if (attempt > 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    std::uint32_t const before = theirs.sequence.load(std::memory_order_acquire);
    text.clear();
    for (auto const& c : theirs.text) {
      char const letter = c.load(std::memory_order_acquire);
      if (letter == 0) break;
      text += letter;
    }
    if (before % 2 == 0 && theirs.sequence.load(std::memory_order_relaxed) == before) break;
  }
  return text;
}

std::string StatusBoard::table(std::span<double const> silent_seconds) const {
  std::string out = fmt::format("{:>5}  {:<20} {:<10} {:>8} {:>8}  {}\n", "rank", "host", "state", "step", "silent_s", "last action");
  for (int r = 0; r < ranks_; ++r) {
    RankState const state = line(r).state.load(std::memory_order_acquire);
    std::string const silent = silent_seconds.empty() ? "-" : fmt::format("{:.1f}", silent_seconds[std::size_t(r)]);
    if (state == RankState::absent)
      fmt::format_to(std::back_inserter(out), "{:>5}  {:<20} {}\n", r, "-", name(state));
    else
      fmt::format_to(std::back_inserter(out), "{:>5}  {:<20} {:<10} {:>8} {:>8}  {}\n", r, host_, name(state), line(r).step.load(), silent,
                     action(r));
  }
  return out;
}

}  // namespace shardmark
