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

TEST(Render, ClipsToTheColumnsAndSaysSo) {
  for (int columns : {20, 40, 60, 100}) {
    std::string const text = render(plan_1f1b({4, 32}), columns);
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("stage")) {
        EXPECT_LE(int(line.size()), columns);
      }
    }
    EXPECT_THAT(text, HasSubstr(" of 72 slots)\n"));
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

}  // namespace
}  // namespace shardmark::test
