// R replicas of data parallelism and R micro-batches of one process, bit for bit, and what the table says of everything else.

#include "validation/equivalence/accumulation/both_ways.hpp"

#include <gtest/gtest.h>

#include <regex>

namespace shardmark::testing {
namespace {

/// Elements that a row of the table says differ; -1: there is no such row.
std::int64_t differing(Supplement const& supplement, std::string const& row) {
  std::smatch match;
  std::regex const pattern(row + R"([^\n]*? (\d+) of \d+ )");
  return std::regex_search(supplement.text, match, pattern) ? std::stoll(match[1]) : -1;
}

class BothWaysOn : public ::testing::TestWithParam<int> {};

/// Ragged counts, tied weights, AdamW, clipping, and a short third update in which replicas are empty.
TEST_P(BothWaysOn, ranks_have_the_same_bits) {
  Options options = small_gpt(GetParam() + 3);
  options.optimizer = OptimizerKind::adamw;
  options.lr = 1e-2;
  options.clip_norm = 0.5;
  Supplement const found = both_ways(options, GetParam());
  EXPECT_EQ(failed(found), std::vector<std::string>{});
  ASSERT_EQ(found.checks.size(), 7U);  // loss, norm, gradient, weights, two states, the recorded leaves
  for (Check const& check : found.checks) EXPECT_GT(check.elements, 0) << check.tensor;
  EXPECT_EQ(differing(found, "data parallelism, in the tree"), 0);
}

TEST_P(BothWaysOn, ranks_every_other_way_differs_where_it_can) {
  Supplement const found = both_ways(small_gpt(GetParam() + 4), GetParam());
  for (char const* row : {"synchronised batch norm", "running statistics", "dropout", "mean of means", "tail by a full count", "clipped",
                          "fused accumulation"})
    EXPECT_GT(differing(found, row), 0) << row << found.text;
  // Two or three leaves in a loop are the tree, and two commute.
  EXPECT_EQ(differing(found, "leaves added in a loop") > 0, GetParam() > 3) << found.text;
  EXPECT_EQ(differing(found, "ring all-reduce") > 0, GetParam() > 2) << found.text;
}

INSTANTIATE_TEST_SUITE_P(Sizes, BothWaysOn, ::testing::Values(2, 3, 4, 5, 6, 7, 8));

TEST(BothWays, other_models_and_types) {
  Options options = small_gpt(7);
  for (ModelKind model : {ModelKind::mlp, ModelKind::convnet})
    for (DType dtype : {DType::f64, DType::f32, DType::bf16}) {
      options.model = model;
      options.hidden = 6;
      options.dtype = dtype;
      EXPECT_EQ(failed(both_ways(options, 3)), std::vector<std::string>{}) << name(model) << " " << name(dtype);
    }
}

TEST(BothWays, a_flipped_bit_is_seen) {
  Options options = small_gpt(7);
  options.inject = Fault{.kind = Fault::Kind::bitflip, .rank = 1, .step = 2, .tensor = "lm_head.weight"};
  options.tied_embeddings = false;
  std::vector<std::string> const found = failed(both_ways(options, 3));
  EXPECT_NE(std::find(found.begin(), found.end(), "gradient of each update"), found.end());
  EXPECT_NE(std::find(found.begin(), found.end(), "weights after each update"), found.end());
}

TEST(BothWays, one_rank_has_nothing_to_compare) {
  Supplement const found = both_ways(small_gpt(7), 1);
  EXPECT_TRUE(found.checks.empty());
  EXPECT_TRUE(found.text.empty());
}

}  // namespace
}  // namespace shardmark::testing
