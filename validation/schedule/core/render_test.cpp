#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

#include "planners.hpp"

namespace shardmark::test {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::StartsWith;

constexpr char const* gpipe_picture =
    "stage 0 | F0 F1 F2 F3  .  .  .  .  .  . B3 B2 B1 B0  R  U\n"
    "stage 1 |  . F0 F1 F2 F3  .  .  .  . B3 B2 B1 B0  R  U\n"
    "stage 2 |  .  . F0 F1 F2 F3  .  . B3 B2 B1 B0  R  U\n"
    "stage 3 |  .  .  . F0 F1 F2 F3 B3 B2 B1 B0  R  U\n";

TEST(Render, DrawsThePictureOfThePaper) { EXPECT_EQ(render(plan_gpipe({4, 4})), gpipe_picture); }

TEST(Render, Draws1F1B) {
  EXPECT_EQ(render(plan_1f1b({3, 4})),
            "stage 0 | F0 F1 F2  .  . B0 F3 B1  . B2  . B3  R  U\n"
            "stage 1 |  . F0 F1  . B0 F2 B1 F3 B2  . B3  R  U\n"
            "stage 2 |  .  . F0 B0 F1 B1 F2 B2 F3 B3  R  U\n");
}

TEST(Render, JoinsBlocksToChunksAndSaysSo) {
  std::string const text = render(lowered(plan_gpipe({4, 4}), 3).schedule);
  EXPECT_EQ(text, std::string(gpipe_picture) + "(blocks joined to chunks; communication not shown)\n");
}

TEST(Render, GoesOnBelowWhatIsWiderThanTheColumns) {
  for (int columns : {20, 40, 60, 100}) {
    std::istringstream lines(render(plan_1f1b({4, 16}), columns));
    std::vector<std::string> stages(4);
    int panels = 0;
    for (std::string line; std::getline(lines, line);) {
      EXPECT_LE(int(line.size()), columns);
      if (line.starts_with("stage")) stages.at(std::size_t(line[6] - '0')) += line.substr(9);
      panels += line.starts_with("stage 0") ? 1 : 0;
    }
    EXPECT_GT(panels, 1);
    std::istringstream whole(render(plan_1f1b({4, 16}), 1000));
    for (std::string const& stage : stages) {
      std::string line;
      std::getline(whole, line);
      EXPECT_EQ(line.substr(9), stage) << "nothing is lost at " << columns << " columns";
    }
  }
}

TEST(Render, EveryPipelineIsReadableAt100Columns) {
  for (NamedPlanner const& planner : all_planners()) {
    std::istringstream lines(render(planner.plan({8, 16, planner.chunks.back()})));
    int stages = 0;
    for (std::string line; std::getline(lines, line);) {
      EXPECT_LE(line.size(), 100u) << planner.test_name;
      stages += line.starts_with("stage") ? 1 : 0;
    }
    EXPECT_EQ(stages % 8, 0);
    EXPECT_GE(stages, 8);
  }
}

TEST(Render, NamesTheChunksOfAnInterleavedLane) {
  EXPECT_THAT(render(plan_interleaved({2, 2, 2})), StartsWith("stage 0 | F0a F1a F0b F1b"));
  EXPECT_THAT(render(lowered(plan_interleaved({2, 2, 2}), 2).schedule), StartsWith("stage 0 | F0a F1a F0b F1b"));
}

TEST(Render, ShowsWeightGradientsAndRecomputations) {
  EXPECT_THAT(render(plan_zero_bubble({2, 2}, ZeroBubble::h1)), StartsWith("stage 0 | F0 F1  . B0 W0 B1 W1  R  U\n"));
  EXPECT_THAT(render(with_recomputation(plan_gpipe({1, 2}))), StartsWith("stage 0 | F0 F1 C1 B1 C0 B0  R  U\n"));
}

TEST(Render, UnrollsAnAsynchronousSchedule) {
  std::string const text = render(plan_pipedream({3, 1}, Delay::stash));
  EXPECT_THAT(text, HasSubstr("stage 2 |  .  . F0 B0  R  U F1 B1  R  U F2 B2  R  U F3 B3  R  U\n"));
  EXPECT_THAT(text, EndsWith("(prologue, 2 repetitions of the body, epilogue)\n"));
}

int count_of(std::string const& text, std::string const& piece) {
  int count = 0;
  for (auto at = text.find(piece); at != std::string::npos; at = text.find(piece, at + 1)) ++count;
  return count;
}

TEST(RenderSvg, HasABoxAndATooltipForEachAction) {
  Schedule const schedule = plan_zero_bubble({3, 4}, ZeroBubble::h1);
  Timeline const timeline = simulate(schedule, compute_only({1, 1, 1}));
  std::string const svg = render_svg(timeline.spans, {.title = "a < b & \"c\"", .lane_of_chunk = schedule.lane_of_chunk, .unit = "units"});
  EXPECT_EQ(count_of(svg, "<title>"), 3 * 4 * 3);
  EXPECT_EQ(count_of(svg, "</title></rect>"), 3 * 4 * 3);
  EXPECT_THAT(svg, HasSubstr("<title>stage 2: backward_weight micro-batch 3, "));
  EXPECT_THAT(svg, HasSubstr(" units</title>"));
  EXPECT_THAT(svg, HasSubstr("a &lt; b &amp; &quot;c&quot;"));
  EXPECT_THAT(svg, StartsWith("<svg xmlns=\"http://www.w3.org/2000/svg\""));
  EXPECT_EQ(count_of(svg, "http"), 1) << "nothing is loaded from elsewhere";
  EXPECT_EQ(count_of(svg, "<text"), count_of(svg, "</text>"));
  EXPECT_THAT(svg, EndsWith("</svg>\n"));
}

TEST(RenderSvg, LegendNamesWhatIsShownAlone) {
  std::string const joint = render_svg(simulate(plan_gpipe({2, 2}), compute_only({1, 1, 1})).spans);
  EXPECT_THAT(joint, HasSubstr(">F forward<"));
  EXPECT_EQ(count_of(joint, "weight half"), 0);
  std::string const split = render_svg(simulate(plan_zero_bubble({2, 2}, ZeroBubble::h1), compute_only({1, 1, 1})).spans);
  EXPECT_THAT(split, HasSubstr(">W backward, weight half<"));
}

TEST(RenderSvg, JoinsBlocksAndLettersChunks) {
  auto const [schedule, blocks] = lowered(plan_interleaved({2, 2, 2}), 3);
  Timeline const timeline = simulate(schedule, compute_only({1, 1, 1}));
  std::string const svg = render_svg(timeline.spans, {.lane_of_chunk = schedule.lane_of_chunk, .form = schedule.form});
  EXPECT_EQ(count_of(svg, ": forward micro-batch"), 2 * 2 * 2) << "three blocks are one box";
  EXPECT_EQ(count_of(svg, " chunk b, "), 2 * 2 * 2);
  EXPECT_THAT(svg, HasSubstr("later chunks"));
}

TEST(RenderSvg, LaysPlanAndRunOverEachOther) {
  Timeline const planned = simulate(plan_1f1b({2, 3}), compute_only({1, 1, 1}));
  Timeline const measured = simulate(plan_1f1b({2, 3}), compute_only({1, 2, 1}));
  std::string const svg = render_svg(planned.spans, measured.spans);
  EXPECT_EQ(count_of(svg, "<title>"), 2 * 2 * 2 * 3);
  EXPECT_EQ(count_of(svg, ">plan<"), 2);
  EXPECT_EQ(count_of(svg, ">run<"), 2);
}

TEST(RenderSvg, NothingIsAPictureToo) { EXPECT_THAT(render_svg({}), EndsWith("</svg>\n")); }

}  // namespace
}  // namespace shardmark::test
