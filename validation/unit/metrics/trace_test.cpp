#include "metrics/trace.hpp"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <sstream>

namespace shardmark {
namespace {

TEST(Clock, GoesForwardInSmallSteps) {
  auto const begin = now_ns();
  EXPECT_GE(now_ns(), begin);
  double const resolution = measure_clock_resolution_ns();
  EXPECT_GT(resolution, 0);
  EXPECT_LT(resolution, 1e6);
}

TEST(Trace, DropsRatherThanGrows) {
  Trace trace(2);
  for (int i = 0; i < 5; ++i) trace.add({.name = "x"});
  EXPECT_EQ(trace.spans().size(), 2u);
  EXPECT_EQ(trace.dropped(), 3u);
  trace.clear();
  EXPECT_EQ(trace.spans().size() + trace.dropped(), 0u);
}

TEST(Trace, ScopeRecordsItsLife) {
  Trace trace(4);
  {
    TraceScope const off(nullptr, TracePhase::forward, "not recorded");
    TraceScope const on(&trace, TracePhase::backward, "h.0", 3, 1);
  }
  ASSERT_EQ(trace.spans().size(), 1u);
  TraceSpan const span = trace.spans()[0];
  EXPECT_STREQ(span.name, "h.0");
  EXPECT_EQ(span.block, 3);
  EXPECT_EQ(span.micro, 1);
  EXPECT_GE(span.end_ns, span.begin_ns);
}

TEST(Trace, PhasesAddUp) {
  std::vector<TraceSpan> const spans{{"a", TracePhase::forward, 0, 0, 0, 1'000'000'000},
                                     {"b", TracePhase::forward, 1, 0, 1'000'000'000, 3'000'000'000},
                                     {"c", TracePhase::communication, -1, -1, 3'000'000'000, 3'500'000'000}};
  auto const seconds = phase_seconds(spans);
  EXPECT_DOUBLE_EQ(seconds[std::size_t(TracePhase::forward)], 3);
  EXPECT_DOUBLE_EQ(seconds[std::size_t(TracePhase::communication)], 0.5);
  EXPECT_DOUBLE_EQ(seconds[std::size_t(TracePhase::backward)], 0);
}

// Case 126: clocks 1000 s apart are brought together, and times count from the first span.
TEST(Trace, case_126_ExportCorrectsClocks) {
  std::vector<TraceSpan> const first{{"send", TracePhase::communication, -1, 0, 5'000, 9'000}};
  std::vector<TraceSpan> const second{{"receive", TracePhase::communication, 2, 0, 1'000'000'006'000, 1'000'000'012'000}};
  std::vector<RankTrace> const ranks{{0, "n1", 0, first}, {1, "n2\xff", -1'000'000'000'000, second}};
  std::ostringstream out;
  write_chrome_trace(out, ranks);
  auto const json = nlohmann::json::parse(out.str());
  std::vector<nlohmann::json> spans;
  for (auto const& event : json["traceEvents"]) {
    if (event["ph"] == "X") spans.push_back(event);
  }
  ASSERT_EQ(spans.size(), 2u);
  EXPECT_DOUBLE_EQ(spans[0]["ts"], 0);
  EXPECT_DOUBLE_EQ(spans[0]["dur"], 4);
  EXPECT_DOUBLE_EQ(spans[1]["ts"], 1);
  EXPECT_DOUBLE_EQ(spans[1]["dur"], 6);
  EXPECT_EQ(spans[1]["pid"], 1);
  EXPECT_EQ(spans[1]["args"]["block"], 2);
  EXPECT_FALSE(spans[0]["args"].contains("block"));
}

TEST(Trace, ExportOfNothingIsValid) {
  std::ostringstream out;
  write_chrome_trace(out, {});
  EXPECT_TRUE(nlohmann::json::parse(out.str())["traceEvents"].empty());
}

}  // namespace
}  // namespace shardmark
