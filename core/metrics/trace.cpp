#include "metrics/trace.hpp"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <ostream>

namespace shardmark {
namespace {

using Json = nlohmann::ordered_json;

Json event(RankTrace const& rank, TraceSpan const& span, std::int64_t origin_ns) {
  Json out = {{"name", span.name},
              {"cat", name(span.phase)},
              {"ph", "X"},
              {"ts", double(span.begin_ns + rank.clock_offset_ns - origin_ns) * 1e-3},
              {"dur", double(span.end_ns - span.begin_ns) * 1e-3},
              {"pid", rank.rank},
              {"tid", 0}};
  if (span.block >= 0) out["args"]["block"] = span.block;
  if (span.micro >= 0) out["args"]["micro"] = span.micro;
  return out;
}

std::string dump(Json const& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace

std::string_view name(TracePhase phase) {
  switch (phase) {
    case TracePhase::data:
      return "data";
    case TracePhase::forward:
      return "forward";
    case TracePhase::backward:
      return "backward";
    case TracePhase::communication:
      return "communication";
    case TracePhase::optimizer:
      return "optimizer";
    case TracePhase::other:
      return "other";
  }
  return "?";
}

std::array<double, trace_phases> phase_seconds(std::span<TraceSpan const> spans) {
  std::array<double, trace_phases> seconds{};
  for (TraceSpan const& span : spans) seconds[std::size_t(span.phase)] += seconds_between(span.begin_ns, span.end_ns);
  return seconds;
}

void write_chrome_trace(std::ostream& out, std::span<RankTrace const> ranks) {
  std::int64_t origin = std::numeric_limits<std::int64_t>::max();
  for (RankTrace const& rank : ranks) {
    for (TraceSpan const& span : rank.spans) origin = std::min(origin, span.begin_ns + rank.clock_offset_ns);
  }
  out << "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[";
  char const* separator = "\n";
  for (RankTrace const& rank : ranks) {
    std::string const title = "rank " + std::to_string(rank.rank) + " on " + rank.host;
    out << separator << dump({{"name", "process_name"}, {"ph", "M"}, {"pid", rank.rank}, {"args", {{"name", title}}}});
    separator = ",\n";
    for (TraceSpan const& span : rank.spans) out << separator << dump(event(rank, span, origin));
  }
  out << "\n]}\n";
}

}  // namespace shardmark
