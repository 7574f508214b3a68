// PipeDream without a flush equals serial SGD with delays (validation rule 16), bit for bit; the twin knows nothing of pipelines.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "validation/equivalence/core/training.hpp"
#include "validation/schedule/core/planners.hpp"

namespace shardmark::testing {
namespace {

OptimizerSettings const momentum{.momentum = 0.9, .rate = {.base = 0.05}};

/// Blocks of `stages` stages, and the delay of each.
struct Stages {
  std::vector<int> first_block;
  std::vector<int> stash;
  int count() const { return int(first_block.size()) - 1; }
};
Stages const two{{0, 2, 4}, {1, 1, 0, 0}}, three{{0, 1, 3, 4}, {2, 1, 1, 0}}, four{{0, 1, 2, 3, 4}, {3, 2, 1, 0}};

class DelayedTwin : public ::testing::TestWithParam<Stages> {
 protected:
  static Outcome pipeline(Stages const& stages, Delay delay, int micros, Cut cut) {
    return train({.coarse = plan_pipedream({stages.count(), micros}, delay),
                  .first_block = stages.first_block,
                  .optimizer = momentum,
                  .tied = Tied::no,
                  .cut = cut,
                  .windows = windows});
  }
  static Outcome twin(std::vector<int> const& delays, int micros, Cut cut) {
    return train({.coarse = plan_delayed("serial", delays, micros),
                  .first_block = {0, 1, 2, 3, 4},
                  .optimizer = momentum,
                  .tied = Tied::no,
                  .cut = cut,
                  .windows = windows});
  }
  static constexpr std::int64_t windows = 9;
};

Cut const each_micro{.micros = 3, .update = UpdateOf::micro};

TEST_P(DelayedTwin, weight_stashing) {
  Outcome const got = pipeline(GetParam(), Delay::stash, 1, each_micro);
  expect_equal(got, twin(GetParam().stash, 1, each_micro));
  // The delays matter: without them other weights come out.
  EXPECT_NE(got.weights, twin({0, 0, 0, 0}, 1, each_micro).weights);
}

TEST_P(DelayedTwin, vertical_sync) {
  int const delay = GetParam().count() - 1;
  expect_equal(pipeline(GetParam(), Delay::vertical, 1, each_micro), twin(std::vector<int>(4, delay), 1, each_micro));
}

TEST_P(DelayedTwin, double_buffered_weights) {
  for (int micros : {4, 5})
    expect_equal(pipeline(GetParam(), Delay::two_buffers, micros, {.micros = micros}),
                 twin(std::vector<int>(4, 1), micros, {.micros = micros}));
}

INSTANTIATE_TEST_SUITE_P(Stages, DelayedTwin, ::testing::Values(two, three, four),
                         [](auto const& stages) { return fmt::format("{}", stages.param.count()); });

}  // namespace
}  // namespace shardmark::testing
