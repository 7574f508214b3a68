#include <fmt/format.h>
#include <unistd.h>

#include "app/bench.hpp"
#include "metrics/clock.hpp"

namespace shardmark {
namespace {

constexpr std::int64_t terminal_interval_ns = 200'000'000, line_interval_ns = 10'000'000'000;
constexpr int bar_width = 30;

}  // namespace

Progress::Progress(bool prints, std::string what, std::int64_t total)
    : prints_(prints), terminal_(isatty(STDERR_FILENO) != 0), what_(std::move(what)), total_(total), last_ns_(now_ns()) {}

Progress::~Progress() {
  if (prints_ && terminal_) fmt::print(stderr, "\r\033[K");
}

void Progress::step(std::int64_t done) {
  std::int64_t const now = now_ns();
  if (!prints_ || now - last_ns_ < (terminal_ ? terminal_interval_ns : line_interval_ns)) return;
  last_ns_ = now;
  if (terminal_) {
    int const filled = int(done * bar_width / std::max<std::int64_t>(1, total_));
    fmt::print(stderr, "\r\033[K{} [{:<{}}] {}/{}", what_, std::string(std::size_t(filled), '='), bar_width, done, total_);
  } else {
    fmt::print(stderr, "{}: {} of {}\n", what_, done, total_);
  }
}

}  // namespace shardmark
