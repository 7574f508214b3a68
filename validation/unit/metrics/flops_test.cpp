#include "metrics/flops.hpp"

#include <gtest/gtest.h>

namespace shardmark {
namespace {

// The example record's model: gpt L4 H512 S256 V8192.
TEST(Flops, GptByBothConventions) {
  auto const flops =
      gpt_flops_per_token({.layers = 4, .hidden = 512, .seq = 256, .vocab = 8192, .parameters = 21130240, .parameters_embedding = 4325376});
  EXPECT_EQ(flops.torchtitan, 107120640);
  EXPECT_EQ(flops.megatron, 103809024);
}

TEST(Flops, case_120_LargeShapesDoNotOverflow) {
  EXPECT_EQ(gpt_flops_per_token({.layers = 0, .hidden = 8192, .seq = 1, .vocab = 300000}).megatron, 6 * std::int64_t{2457600000});
  EXPECT_EQ(mlp_flops_per_sample(std::int64_t{1} << 40), 6 * (std::int64_t{1} << 40));
}

}  // namespace
}  // namespace shardmark
