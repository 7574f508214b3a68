// Hard test 1: the PipeDream scalar chain (case 69), exact in fp64. Versions of weights are right or these numbers are not.

#include <gtest/gtest.h>

#include <fmt/format.h>

#include <cmath>

#include "model/layers.hpp"
#include "validation/equivalence/core/harness.hpp"
#include "validation/schedule/core/planners.hpp"

namespace shardmark::testing {
namespace {

std::string numbered(std::size_t stage) { return fmt::format("w{}", stage); }

/// w2 w1 w0 x against t, squared: one block a weight.
Model scalar_chain(std::size_t stages) {
  Model model{.spec = {}, .blocks = {}, .dtype = DType::f64, .seed = 1};
  for (std::size_t s = 0; s < stages; ++s) {
    UnitId const unit = model.spec.add_unit(numbered(s));
    ParamId const w = model.spec.add(unit, numbered(s), {1, 1}, {}, true);
    std::vector<std::unique_ptr<Layer>> layers;
    layers.push_back(std::make_unique<Linear>(Linear::Parameters{w, {}}, Activation::none, 0));
    if (s + 1 == stages) layers.push_back(std::make_unique<SquaredErrorLoss>(Linear::slots));
    Block block;
    block.name = model.spec[unit].name;
    block.slots = Linear::slots + SquaredErrorLoss::slots;
    block.body = std::make_unique<Chain>(std::move(layers));
    block.produces = {{unit, 0}};
    block.reads = {unit};
    block.boundary = {1};
    model.blocks.push_back(std::move(block));
  }
  return model;
}

std::vector<FixedBatches::Sample> const fixture{{{1}, {1}}, {{2}, {1}}, {{1}, {0}}, {{2}, {1}}};

struct Outcome {
  std::vector<double> weights, losses;
};

/// Runs `windows` windows of the chain on one thread rank a stage.
Outcome run_chain(Schedule const& coarse, std::vector<double> const& start, std::vector<std::int64_t> rows, std::int64_t windows) {
  int const stages = int(start.size());
  Model const model = scalar_chain(start.size());
  std::vector<int> first_block;
  for (int s = 0; s <= stages; ++s) first_block.push_back(s);
  Schedule schedule = refine(coarse, model.shapes(), first_block);
  schedule = lower(schedule, model.shapes(), 0, Overlap::off);
  check(schedule, model.shapes());
  Outcome out;
  out.weights.resize(start.size());
  run_thread_ranks(stages, [&](Communicator& world) {
    auto ops = make_reference_backend();
    Bench bench(*ops, world, {.pipeline = stages});
    FixedBatches batches(fixture, rows, std::size_t(schedule.micros_per_update()));
    Program program({.model = model,
                     .schedule = schedule,
                     .lane = world.rank(),
                     .ops = *ops,
                     .arena = bench.arena,
                     .mesh = bench.mesh,
                     .batches = batches,
                     .samples = {DType::f64, DType::f64, {1}, {1}, 0},
                     .optimizer = {.rate = {.base = 0.125}}});
    UnitId const unit{world.rank()};
    *program.store().flat(Part::compute, unit, Version{0}).as<double>() = start[std::size_t(world.rank())];
    program.advance(windows);
    program.drain();
    out.weights[std::size_t(world.rank())] = weights_of(program, unit)[0];
    if (world.rank() + 1 == stages)
      for (WindowResult const& w : program.history()) out.losses.push_back(w.loss * double(w.counted));
  });
  return out;
}

double over(double numerator, int power) { return std::ldexp(numerator, -power); }

TEST(PipeDreamFixture, case_69_weight_stashing) {
  Outcome const got = run_chain(plan_pipedream({3, 1}, Delay::stash), {1, 2, 1}, {1}, 4);
  EXPECT_EQ(got.weights, (std::vector{over(-12963675, 27), over(389443749, 28), over(60239, 18)}));
  EXPECT_EQ(got.losses, (std::vector{0.5, 2.0, 225.0 / 2048, over(116100625, 27)}));
}

TEST(PipeDreamFixture, case_69_vertical_sync) {
  Outcome const got = run_chain(plan_pipedream({3, 1}, Delay::vertical), {1, 2, 1}, {1}, 4);
  EXPECT_EQ(got.weights, (std::vector{-13435.0 / 8192, 2945.0 / 4096, -13435.0 / 8192}));
  EXPECT_EQ(got.losses, (std::vector{0.5, 4.5, 2.0, 5041.0 / 8192}));
}

TEST(PipeDreamFixture, case_69_vertical_sync_with_unequal_outer_weights) {
  Outcome const got = run_chain(plan_pipedream({3, 1}, Delay::vertical), {1, 2, 1.5}, {1}, 4);
  EXPECT_EQ(got.weights, (std::vector{over(-2329, 9), over(-205, 8), over(-4569, 11)}));
  EXPECT_EQ(got.losses, (std::vector{2.0, 12.5, 4.5, 9.0 / 512}));
}

TEST(PipeDreamFixture, case_69_double_buffered_weights) {
  Outcome const got = run_chain(plan_pipedream({3, 4}, Delay::two_buffers), {1, 2, 1.5}, {1}, 3);
  EXPECT_EQ(got.weights, (std::vector{over(-1983449313, 29), over(-89242113, 28), over(-1905556939, 30)}));
  ASSERT_EQ(got.losses.size(), 3u);
  EXPECT_EQ(got.losses[0] / 4, 63.0 / 8);
  EXPECT_EQ(got.losses[1] / 4, 63.0 / 8);
  EXPECT_EQ(got.losses[2] / 4, over(1263190581, 32));
}

}  // namespace
}  // namespace shardmark::testing
