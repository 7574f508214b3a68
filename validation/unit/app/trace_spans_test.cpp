#include "app/trace_spans.hpp"

#include <gtest/gtest.h>

#include <sstream>

#include "schedule/planners.hpp"
#include "schedule/render.hpp"

namespace shardmark {
namespace {

Timeline planned() {
  return simulate(plan_1f1b({2, 3}), costs_of({{.forward = 1, .input = 1, .weight = 1}, {.forward = 2, .input = 1, .weight = 1}}));
}

TEST(TraceSpans, APlanBecomesATraceForPerfetto) {
  auto const lanes = planned_trace(planned(), 1e-3);
  ASSERT_EQ(lanes.size(), 2u);
  EXPECT_EQ(lanes[0].size(), 6u) << "what takes no time is left out";
  EXPECT_EQ(lanes[1][0].begin_ns, 1'000'000);
  EXPECT_EQ(lanes[1][0].end_ns, 3'000'000);
  std::vector<RankTrace> ranks;
  for (int lane = 0; lane < 2; ++lane) ranks.push_back({lane, "planned", 0, lanes[std::size_t(lane)]});
  std::ostringstream out;
  write_chrome_trace(out, ranks);
  EXPECT_NE(out.str().find(R"("name":"backward","cat":"backward","ph":"X","ts":3000.0,"dur":2000.0,"pid":1)"), std::string::npos)
      << out.str();
}

TEST(TraceSpans, ATraceComesBackAsSpans) {
  Timeline const timeline = planned();
  std::vector<Span> back;
  for (int lane = 0; lane < 2; ++lane) {
    auto trace = planned_trace(timeline)[std::size_t(lane)];
    trace.push_back({"read", TracePhase::data, -1, -1, 0, 1});
    auto const spans = measured_spans(trace, lane, 0);
    back.insert(back.end(), spans.begin(), spans.end());
  }
  EXPECT_EQ(render_svg(back), render_svg([&] {
              std::vector<Span> ordered;  // lane by lane, as the trace is
              for (int lane = 0; lane < 2; ++lane) {
                for (Span const& span : timeline.spans) {
                  if (span.lane == lane) ordered.push_back(span);
                }
              }
              return ordered;
            }()));
}

}  // namespace
}  // namespace shardmark
