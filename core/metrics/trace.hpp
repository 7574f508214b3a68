#pragma once
// What a rank did, when. Spans go into memory taken at construction and are written out after the steps, for Perfetto and chrome://tracing.

#include <array>
#include <cstdint>
#include <iosfwd>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "metrics/clock.hpp"

namespace shardmark {

/// Where a step's time goes; the record's `phases_seconds`.
enum class TracePhase : std::uint8_t { data, forward, backward, communication, optimizer, other };
inline constexpr std::size_t trace_phases = 6;
std::string_view name(TracePhase phase);

struct TraceSpan {
  char const* name = "";  // a string literal: nothing is copied while a step runs
  TracePhase phase = TracePhase::other;
  std::int32_t block = -1, micro = -1;  // -1: none
  std::int64_t begin_ns = 0, end_ns = 0;
};

/// The spans of one rank; only the rank's own thread writes.
class Trace {
 public:
  explicit Trace(std::size_t capacity) { spans_.reserve(capacity); }
  void add(TraceSpan const& span) {
    if (spans_.size() == spans_.capacity()) {
      ++dropped_;
    } else {
      spans_.push_back(span);
    }
  }
  std::span<TraceSpan const> spans() const { return spans_; }
  /// Spans that found no room. A trace with dropped spans says nothing about phases.
  std::size_t dropped() const { return dropped_; }
  void clear() {
    spans_.clear();
    dropped_ = 0;
  }

 private:
  std::vector<TraceSpan> spans_;
  std::size_t dropped_ = 0;
};

/// Adds the time of its own life to `trace`; a null trace costs one comparison.
class TraceScope {
 public:
  TraceScope(Trace* trace, TracePhase phase, char const* name, std::int32_t block = -1, std::int32_t micro = -1)
      : trace_(trace), span_{name, phase, block, micro, trace == nullptr ? 0 : now_ns(), 0} {}
  ~TraceScope() {
    if (trace_ == nullptr) return;
    span_.end_ns = now_ns();
    trace_->add(span_);
  }
  TraceScope(TraceScope const&) = delete;
  TraceScope& operator=(TraceScope const&) = delete;

 private:
  Trace* trace_;
  TraceSpan span_;
};

/// Seconds per phase. Spans of one rank must not contain each other. What no span covers is not in here.
std::array<double, trace_phases> phase_seconds(std::span<TraceSpan const> spans);

struct RankTrace {
  int rank = 0;
  std::string host;
  std::int64_t clock_offset_ns = 0;  // added to this rank's times: its clock against rank 0's
  std::span<TraceSpan const> spans;
};
/// The Chrome trace event format, one process a rank; times count from the first span. Unit in the file: microseconds.
void write_chrome_trace(std::ostream& out, std::span<RankTrace const> ranks);

}  // namespace shardmark
