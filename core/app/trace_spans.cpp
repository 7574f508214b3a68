#include "app/trace_spans.hpp"

#include <cmath>

namespace shardmark {
namespace {

TracePhase phase_of(Do what) {
  switch (what) {
    case Do::forward:
      return TracePhase::forward;
    case Do::backward:
    case Do::backward_input:
    case Do::backward_weight:
    case Do::recompute:
    case Do::fold:
      return TracePhase::backward;
    case Do::post:
    case Do::wait:
    case Do::release:
      return TracePhase::communication;
    case Do::tie:
    case Do::decide:
    case Do::update:
      return TracePhase::optimizer;
    case Do::reduce:
      return TracePhase::other;
  }
  return TracePhase::other;
}

}  // namespace

TraceSpan trace_span(Action const& action, std::int64_t begin_ns, std::int64_t end_ns) {
  // The names of actions are literals, as TraceSpan wants them.
  return {name(action.what).data(), phase_of(action.what), action.chunk.v, action.micro.v, begin_ns, end_ns};
}

std::vector<std::vector<TraceSpan>> planned_trace(Timeline const& timeline, double seconds) {
  std::vector<std::vector<TraceSpan>> lanes(timeline.lanes.size());
  auto const to_ns = [&](double time) { return std::int64_t(std::llround(time * seconds * 1e9)); };
  for (Span const& span : timeline.spans) {
    if (span.end > span.begin) lanes[std::size_t(span.lane)].push_back(trace_span(span.action, to_ns(span.begin), to_ns(span.end)));
  }
  return lanes;
}

std::vector<Span> measured_spans(std::span<TraceSpan const> trace, int lane, std::int64_t origin_ns) {
  std::vector<Span> spans;
  for (TraceSpan const& span : trace) {
    for (int what = 0; what <= int(Do::release); ++what) {
      if (name(Do(what)) != span.name) continue;
      Action const action{.what = Do(what), .chunk = {span.block}, .micro = {span.micro}};
      spans.push_back({lane, action, seconds_between(origin_ns, span.begin_ns), seconds_between(origin_ns, span.end_ns)});
    }
  }
  return spans;
}

}  // namespace shardmark
