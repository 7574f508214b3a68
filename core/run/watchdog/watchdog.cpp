#include "run/watchdog.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <csignal>
#include <fstream>
#include <mutex>
#include <numeric>
#include <optional>
#include <thread>
#include <vector>

namespace shardmark {
namespace {

constexpr double suspicious_seconds = 0.2;  // of silence, before a process is looked for

std::atomic<int> stop_signal{0};
std::atomic<int> stop_signals{0};

void note_signal(int signal) {
  stop_signal.store(signal);
  stop_signals.fetch_add(1);
}

using Clock = std::chrono::steady_clock;
double seconds_between(Clock::time_point from, Clock::time_point to) { return std::chrono::duration<double>(to - from).count(); }

void print(std::string_view text) {
  while (!text.empty()) {
    ssize_t const written = write(STDERR_FILENO, text.data(), text.size());
    if (written <= 0) return;
    text.remove_prefix(std::size_t(written));
  }
}

/// When a counter moved last, as seen from here.
struct Seen {
  std::uint64_t value = 0;
  Clock::time_point moved = Clock::now();
  void look(std::uint64_t now, Clock::time_point time) {
    if (now != value) *this = {now, time};
  }
};

}  // namespace

void install_signal_flags() {
  // No handlers: a handler runs on the stack of the thread that the signal hits, and oneDNN's matmul kernels point the stack pointer
  // into the heap while they run, where the handler's frame would overwrite what lies there. So the signals are blocked in this thread
  // and, since threads inherit that, in all that come after it, but for one that waits for them.
  static std::once_flag once;
  std::call_once(once, [] {
    sigset_t signals;
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals, nullptr);
    std::thread([signals] {
      for (int signal = 0;;)
        if (sigwait(&signals, &signal) == 0) note_signal(signal);
    }).detach();
  });
}

int stop_requested() { return stop_signal.load(); }

struct Watchdog::State {
  StatusBoard& board;
  double timeout_seconds, grace_seconds;
  void (*last_words)(char const*, void*);
  void* argument;
  std::vector<Seen> heartbeats;
  Seen work{};
  std::optional<Clock::time_point> stop_asked{};
  std::mutex mutex{};
  std::condition_variable_any wake{};
  std::jthread thread{};

  RankState state_of(int rank) const { return board.line(rank).state.load(std::memory_order_acquire); }
  bool watched(int rank) const {
    RankState const s = state_of(rank);
    return s == RankState::starting || s == RankState::working || s == RankState::waiting;
  }
  void watch(std::stop_token const& stop);
  void look(Clock::time_point now);
  void forget(Clock::time_point now);
  bool dead(int rank) const;
  std::vector<double> silent_seconds(Clock::time_point now) const;
  std::string complaint(Clock::time_point now) const;
  std::string stop_complaint(Clock::time_point now);
  [[noreturn]] void end(std::string const& why, char const* state, Clock::time_point now);
};

void Watchdog::State::watch(std::stop_token const& stop) {
  auto const interval = std::chrono::duration<double>(std::clamp(timeout_seconds / 20, 0.01, 0.1));
  Clock::time_point last = Clock::now();
  std::unique_lock lock(mutex);
  while (!stop.stop_requested()) {
    wake.wait_for(lock, stop, interval, [] { return false; });
    if (stop.stop_requested()) return;
    Clock::time_point const now = Clock::now();
    // This process itself was stopped, or the machine slept: what the others did meanwhile isn't known yet.
    if (seconds_between(last, now) > std::max(timeout_seconds / 2, 20 * interval.count())) forget(now);
    last = now;
    look(now);
    if (board.line(0).alarm.load() != 0) end("", "failed", now);
    if (std::string const why = complaint(now); !why.empty()) end(why, "failed", now);
    if (std::string const why = stop_complaint(now); !why.empty()) end(why, "stopped", now);
  }
}

void Watchdog::State::look(Clock::time_point now) {
  std::uint64_t total = 0;
  for (int r = 0; r < board.ranks(); ++r) {
    heartbeats[std::size_t(r)].look(board.line(r).heartbeat.load(std::memory_order_relaxed), now);
    total += board.line(r).work.load(std::memory_order_relaxed);
  }
  work.look(total, now);
}

void Watchdog::State::forget(Clock::time_point now) {
  for (Seen& seen : heartbeats) seen.moved = now;
  work.moved = now;
}

std::vector<double> Watchdog::State::silent_seconds(Clock::time_point now) const {
  std::vector<double> out;
  for (Seen const& seen : heartbeats) out.push_back(seconds_between(seen.moved, now));
  return out;
}

/// Whether the process of a rank on this node is gone or a zombie.
bool Watchdog::State::dead(int rank) const {
  std::int32_t const process = board.line(rank).process.load(std::memory_order_relaxed);
  if (process == 0 || process == getpid()) return false;
  std::ifstream file(fmt::format("/proc/{}/stat", process));
  std::string text;
  if (!std::getline(file, text)) return std::ifstream("/proc/self/stat").good();
  std::size_t const name_end = text.rfind(')');  // pid (name) state ...
  return name_end != std::string::npos && name_end + 2 < text.size() && (text[name_end + 2] == 'Z' || text[name_end + 2] == 'X');
}

std::string Watchdog::State::complaint(Clock::time_point now) const {
  std::string out;
  bool anyone_watched = false, elsewhere = false;
  for (int r = 0; r < board.ranks(); ++r) {
    elsewhere |= state_of(r) == RankState::absent;
    if (!watched(r)) continue;
    anyone_watched = true;
    double const silent = seconds_between(heartbeats[std::size_t(r)].moved, now);
    if (silent > suspicious_seconds && dead(r)) {
      out += fmt::format("watchdog: the process of rank {} on {} died: {}, step {}, last action: {}\n", r, board.host(), name(state_of(r)),
                         board.line(r).step.load(), board.action(r));
    } else if (silent > timeout_seconds)
      out += fmt::format("watchdog: rank {} on {} is silent for {:.1f} s (time-out {:g} s): {}, step {}, last action: {}\n", r,
                         board.host(), silent, timeout_seconds, name(state_of(r)), board.line(r).step.load(), board.action(r));
  }
  double const idle = seconds_between(work.moved, now);
  if (out.empty() && anyone_watched && idle > timeout_seconds * (elsewhere ? 10 : 1))
    out = fmt::format("watchdog: no rank on {} has worked for {:.1f} s (time-out {:g} s): all wait for others\n", board.host(), idle,
                      timeout_seconds);
  return out;
}

std::string Watchdog::State::stop_complaint(Clock::time_point now) {
  if (stop_requested() == 0) return "";
  if (!stop_asked) stop_asked = now;
  if (stop_signals.load() > 1) return fmt::format("watchdog: a second signal ({}) asks for the end at once\n", stop_requested());
  if (seconds_between(*stop_asked, now) > grace_seconds)
    return fmt::format("watchdog: signal {} asked for a stop {:g} s ago and this rank has not ended\n", stop_requested(), grace_seconds);
  return "";
}

void Watchdog::State::end(std::string const& why, char const* state, Clock::time_point now) {
  // One watchdog of the board prints; the last words of all come before the first exit, on which a launcher kills the rest.
  bool const first = board.line(0).alarm.fetch_add(1) == 0;
  if (first) print(why + board.table(silent_seconds(now)));
  if (last_words != nullptr) last_words(state, argument);
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  _exit(int(Exit::rank_failed));
}

Watchdog::Watchdog(StatusBoard& board, double timeout_seconds, void (*last_words)(char const* state, void*), void* argument,
                   double grace_seconds)
    : state_(new State{board, timeout_seconds, grace_seconds, last_words, argument, std::vector<Seen>(std::size_t(board.ranks()))}) {
  state_->thread = std::jthread([state = state_.get()](std::stop_token stop) { state->watch(stop); });
}

Watchdog::~Watchdog() = default;

}  // namespace shardmark
