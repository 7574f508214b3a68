// Cuts of a chain of blocks, against every possible one.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "base/error.hpp"
#include "schedule/partition.hpp"

namespace shardmark::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

/// Calls `body` with every cut of `blocks` blocks into `pieces` pieces.
void every_cut(int blocks, int pieces, std::function<void(std::vector<int> const&)> const& body, std::vector<int> cut = {0}) {
  if (int(cut.size()) == pieces) {
    cut.push_back(blocks);
    return body(cut);
  }
  int const left = pieces - int(cut.size());  // pieces that come behind this boundary's
  for (int next = cut.back() + 1; next <= blocks - left; ++next) {
    auto longer = cut;
    longer.push_back(next);
    every_cut(blocks, pieces, body, longer);
  }
}

double cost_of(std::vector<double> const& costs, std::vector<int> const& cut) {
  double worst = 0;
  for (std::size_t i = 0; i + 1 < cut.size(); ++i) {
    double cost = 0;
    for (int b = cut[i]; b < cut[i + 1]; ++b) cost += costs[std::size_t(b)];
    worst = std::max(worst, cost);
  }
  return worst;
}

std::vector<int> sizes(std::vector<int> const& cut) {
  std::vector<int> out;
  for (std::size_t i = 0; i + 1 < cut.size(); ++i) out.push_back(cut[i + 1] - cut[i]);
  return out;
}

std::string refusal(auto&& cutting) {
  try {
    cutting();
  } catch (BadRequest const& problem) {
    return problem.what();
  }
  return {};
}

TEST(Partition, IsTheBestOfAllCuts) {
  std::mt19937 random(5);
  std::uniform_int_distribution<int> count(1, 9), cost(0, 20);
  for (int trial = 0; trial < 300; ++trial) {
    std::vector<double> costs(std::size_t(count(random)));
    for (double& c : costs) c = cost(random);
    int const blocks = int(costs.size()), pieces = 1 + trial % blocks;
    double best = 1e9;
    every_cut(blocks, pieces, [&](auto const& cut) { best = std::min(best, cost_of(costs, cut)); });
    EXPECT_EQ(cost_of(costs, cut_evenly(costs, pieces)), best) << trial;
  }
}

TEST(Partition, IsTheBestOfThoseThatFit) {
  std::mt19937 random(6);
  std::uniform_int_distribution<int> count(2, 9), value(0, 20);
  int refused = 0, changed = 0;
  for (int trial = 0; trial < 300; ++trial) {
    std::vector<double> costs(std::size_t(count(random))), bytes(costs.size());
    for (double& c : costs) c = value(random);
    for (double& b : bytes) b = value(random);
    int const blocks = int(costs.size()), pieces = 1 + trial % blocks;
    // Earlier pieces hold more micro-batches.
    auto const needs = [&](int piece, int begin, int end) {
      double sum = 0;
      for (int b = begin; b < end; ++b) sum += bytes[std::size_t(b)] * (pieces - piece);
      return sum;
    };
    MemoryLimit const limit{needs, 60};
    auto const fits = [&](std::vector<int> const& cut) {
      for (int i = 0; i < pieces; ++i) {
        if (needs(i, cut[std::size_t(i)], cut[std::size_t(i) + 1]) > limit.limit) return false;
      }
      return true;
    };
    double best = -1;
    every_cut(blocks, pieces, [&](auto const& cut) {
      if (fits(cut)) best = best < 0 ? cost_of(costs, cut) : std::min(best, cost_of(costs, cut));
    });
    if (best < 0) {
      ++refused;
      EXPECT_THAT(refusal([&] { cut_evenly(costs, pieces, limit); }), HasSubstr("don't fit")) << trial;
      continue;
    }
    auto const cut = cut_evenly(costs, pieces, limit);
    EXPECT_TRUE(fits(cut)) << trial;
    EXPECT_EQ(cost_of(costs, cut), best) << trial;
    changed += cut == cut_evenly(costs, pieces) ? 0 : 1;
  }
  EXPECT_GT(refused, 20);
  EXPECT_GT(changed, 20) << "the limit matters";
}

// case 21: floor division drops layers.
TEST(Partition, case_21_EveryBlockIsInExactlyOnePiece) {
  for (auto const& [blocks, pieces] : {std::pair{10, 3}, {30, 4}, {57, 8}, {7, 7}, {1, 1}}) {
    auto const cut = cut_evenly(std::vector<double>(std::size_t(blocks), 1.0), pieces);
    ASSERT_EQ(int(cut.size()), pieces + 1);
    EXPECT_EQ(cut.front(), 0);
    EXPECT_EQ(cut.back(), blocks);
    EXPECT_EQ(std::ranges::adjacent_find(cut, std::greater_equal<>()), cut.end()) << "ascending, no piece empty";
  }
}

// case 44: the remainder lands on the last stage.
TEST(Partition, case_44_TheRemainderIsSpread) {
  auto const cut = sizes(cut_evenly(std::vector<double>(38, 1.0), 8));
  EXPECT_EQ(*std::ranges::max_element(cut), 5);
  EXPECT_LE(cut.back(), 5);
}

TEST(Partition, CostsMoveTheCut) {
  EXPECT_THAT(cut_evenly(std::vector<double>{1, 1, 1, 1, 4}, 2), ElementsAre(0, 4, 5));
  EXPECT_THAT(cut_evenly(std::vector<double>{9, 1, 1, 1, 1}, 3), ElementsAre(0, 1, 4, 5)) << "ties: the last piece is the shortest";
}

TEST(Partition, MorePiecesThanBlocksAreRefused) {
  EXPECT_THAT(refusal([] { cut_evenly(std::vector<double>{1, 1}, 3); }), HasSubstr("3 pieces for 2 blocks"));
  EXPECT_THAT(refusal([] { cut_evenly(std::vector<double>{1, 1}, 0); }), HasSubstr("0 pieces"));
}

TEST(Partition, ByHand) {
  EXPECT_THAT(cut_by_counts({2, 2, 4}, 8, 3), ElementsAre(0, 2, 4, 8));
  EXPECT_THAT(refusal([] { cut_by_counts({2, 2, 4}, 9, 3); }), HasSubstr("balance 2,2,4 has 8 blocks"));
  EXPECT_THAT(refusal([] { cut_by_counts({2, 2, 4}, 7, 3); }), HasSubstr("add up to 7"));
  EXPECT_THAT(refusal([] { cut_by_counts({2, 0, 6}, 8, 3); }), HasSubstr("each piece has a block"));
  EXPECT_THAT(refusal([] { cut_by_counts({4, 4}, 8, 3); }), HasSubstr("the pipeline has 3"));
  EXPECT_THAT(refusal([] { cut_by_counts({2000000000, 2000000000}, 8, 2); }), HasSubstr("each piece has a block"));
}

TEST(Partition, BySplitPoints) {
  std::vector<std::string> const names{"embedding", "layer0", "layer1", "head"};
  EXPECT_THAT(cut_at({"layer1", "head"}, names, 3), ElementsAre(0, 2, 3, 4));
  EXPECT_THAT(refusal([&] { cut_at({"layer7"}, names, 2); }), HasSubstr("embedding, layer0, layer1, head"));
  EXPECT_THAT(refusal([&] { cut_at({"head", "layer1"}, names, 3); }), HasSubstr("a piece would be empty"));
  EXPECT_THAT(refusal([&] { cut_at({"embedding"}, names, 2); }), HasSubstr("a piece would be empty"));
  EXPECT_THAT(refusal([&] { cut_at({"layer1"}, names, 3); }), HasSubstr("1 split points for 3 pieces"));
}

}  // namespace
}  // namespace shardmark::test
