#pragma once
// Between what a schedule calls its actions and what a trace calls its spans, so that planned and measured runs look the same.

#include <span>
#include <vector>

#include "metrics/trace.hpp"
#include "schedule/simulate.hpp"

namespace shardmark {

/// One action of a run.
TraceSpan trace_span(Action const& action, std::int64_t begin_ns, std::int64_t end_ns);

/// The planned spans of each lane, for write_chrome_trace(). `seconds`: of one unit of the timeline's time.
std::vector<std::vector<TraceSpan>> planned_trace(Timeline const& timeline, double seconds = 1);

/// Measured spans in seconds since `origin_ns`, for render_svg(); those that no action made (data) are left out.
std::vector<Span> measured_spans(std::span<TraceSpan const> trace, int lane, std::int64_t origin_ns);

}  // namespace shardmark
