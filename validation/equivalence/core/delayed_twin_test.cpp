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
  static Outcome twin(std::vector<int> const& delays, int micros, Cut cut, OptimizerSettings const& optimizer = momentum,
                      Tied tied = Tied::no) {
    return train({.coarse = plan_delayed("serial", delays, micros),
                  .first_block = {0, 1, 2, 3, 4},
                  .optimizer = optimizer,
                  .tied = tied,
                  .cut = cut,
                  .windows = windows});
  }
  /// All stages decide on each update together.
  static Outcome joint(Stages const& stages, Delay delay, int micros, Cut cut, OptimizerSettings const& optimizer, Tied tied) {
    return train({.coarse = test::plan_joint({stages.count(), micros}, delay),
                  .first_block = stages.first_block,
                  .optimizer = optimizer,
                  .tied = tied,
                  .cut = cut,
                  .windows = windows});
  }
  static constexpr std::int64_t windows = 9;
};

/// The norm's limit is far below the norms, so that every update is clipped, and differently.
OptimizerSettings clipping(Rule rule) {
  OptimizerSettings out = momentum;
  out.rule = rule;
  out.clip_norm = 0.05;
  return out;
}

void expect_clipped(Outcome const& outcome, double limit) {
  ASSERT_GE(outcome.norms.size(), 9u);
  for (double norm : outcome.norms) EXPECT_GT(norm, 2 * limit);
  EXPECT_NE(outcome.norms[0], outcome.norms[1]);
}

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

void expect_equal_decisions(Outcome const& got, Outcome const& want) {
  expect_equal(got, want);
  EXPECT_EQ(got.norms, want.norms);
  EXPECT_EQ(got.skipped, want.skipped);
}

TEST_P(DelayedTwin, joint_decisions_clip_by_the_norm_of_all_stages) {
  Stages const& stages = GetParam();
  for (Tied tied : {Tied::no, Tied::yes})
    for (Rule rule : {Rule::sgd, Rule::adamw}) {
      OptimizerSettings const optimizer = clipping(rule);
      Outcome const vertical = joint(stages, Delay::vertical, 1, each_micro, optimizer, tied);
      expect_clipped(vertical, optimizer.clip_norm);
      expect_equal_decisions(vertical, twin(std::vector<int>(4, stages.count() - 1), 1, each_micro, optimizer, tied));
      for (int micros : {4, 5}) {
        Outcome const buffered = joint(stages, Delay::two_buffers, micros, {.micros = micros}, optimizer, tied);
        expect_clipped(buffered, optimizer.clip_norm);
        expect_equal_decisions(buffered, twin(std::vector<int>(4, 1), micros, {.micros = micros}, optimizer, tied));
      }
    }
}

TEST_P(DelayedTwin, joint_decisions_without_clipping_change_nothing) {
  Stages const& stages = GetParam();
  expect_equal(joint(stages, Delay::vertical, 1, each_micro, momentum, Tied::no), pipeline(stages, Delay::vertical, 1, each_micro));
  Cut const cut{.micros = 4};
  expect_equal(joint(stages, Delay::two_buffers, 4, cut, momentum, Tied::no), pipeline(stages, Delay::two_buffers, 4, cut));
}

/// Makes an update's gradient of the lane's first block infinite, when its last leaf has been folded.
class Overflow final : public Hook {
 public:
  explicit Overflow(std::int64_t update) : update_(update) {}
  void after(Program& program, Action const& action, std::int64_t update) override {
    Segment const segment = program.store().gradients().order().back();
    if (action.what != Do::fold || update != update_ || !program.store().gradients().complete(segment)) return;
    program.stream().synchronize();
    program.store().gradients().total(segment).as<float>()[0] = std::numeric_limits<float>::infinity();
  }

 private:
  std::int64_t update_;
};

TEST_P(DelayedTwin, joint_decisions_skip_an_update_on_all_stages) {
  Stages const& stages = GetParam();
  constexpr std::int64_t bad = 4;
  std::vector<Overflow> hooks(std::size_t(stages.count()), Overflow(bad)), alone(1, Overflow(bad));
  for (int stage = 0; stage < stages.count(); ++stage) {
    Training training{.coarse = test::plan_joint({stages.count(), 1}, Delay::vertical),
                      .first_block = stages.first_block,
                      .optimizer = clipping(Rule::adamw),
                      .tied = Tied::yes,
                      .cut = each_micro,
                      .windows = windows};
    Overflow nothing(-1);
    training.hook = [&](int rank) -> Hook* { return rank == stage ? &hooks[std::size_t(stage)] : &nothing; };
    Outcome const got = train(training);
    ASSERT_GT(std::int64_t(got.skipped.size()), bad);
    for (std::size_t update = 0; update < got.skipped.size(); ++update) EXPECT_EQ(got.skipped[update], update == bad) << update;
    training.coarse = plan_delayed("serial", std::vector<int>(4, stages.count() - 1), 1);
    training.first_block = {0, 1, 2, 3, 4};
    training.hook = [&](int) -> Hook* { return &alone.front(); };
    expect_equal(got, train(training));
  }
}

INSTANTIATE_TEST_SUITE_P(Stages, DelayedTwin, ::testing::Values(two, three, four),
                         [](auto const& stages) { return fmt::format("{}", stages.param.count()); });

}  // namespace
}  // namespace shardmark::testing
