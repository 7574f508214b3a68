#pragma once
// The scalar chain of case 69: a pipeline with one weight a stage, whose numbers are exact in fp64.

#include <fmt/format.h>

#include "model/layers.hpp"
#include "schedule/check.hpp"
#include "validation/equivalence/core/harness.hpp"

namespace shardmark::testing {

inline std::string numbered(std::size_t stage) { return fmt::format("w{}", stage); }

/// w2 w1 w0 x against t, squared: one block a weight.
inline Model scalar_chain(std::size_t stages) {
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

inline std::vector<FixedBatches::Sample> const fixture{{{1}, {1}}, {{2}, {1}}, {{1}, {0}}, {{2}, {1}}};

struct ChainOutcome {
  std::vector<double> weights, losses;
};

struct ChainRun {
  Schedule coarse;
  std::vector<double> start;       // weights
  std::vector<std::int64_t> rows;  // of each micro-batch, over and over
  std::int64_t windows = 1;
  std::vector<FixedBatches::Sample> samples = fixture;
  double rate = 0.125;
};

/// Runs the chain on one thread rank a stage.
inline ChainOutcome run_chain(ChainRun const& run) {
  int const stages = int(run.start.size());
  Model const model = scalar_chain(run.start.size());
  std::vector<int> first_block;
  for (int s = 0; s <= stages; ++s) first_block.push_back(s);
  Schedule schedule = refine(run.coarse, model.shapes(), first_block);
  schedule = lower(schedule, model.shapes(), 0, Overlap::off);
  check(schedule, model.shapes());
  ChainOutcome out;
  out.weights.resize(run.start.size());
  run_thread_ranks(stages, [&](Communicator& world) {
    auto ops = make_reference_backend();
    Bench bench(*ops, world, {.pipeline = stages});
    FixedBatches batches(run.samples, run.rows, std::size_t(schedule.micros_per_update()));
    Program program({.model = model,
                     .schedule = schedule,
                     .lane = world.rank(),
                     .ops = *ops,
                     .arena = bench.arena,
                     .mesh = bench.mesh,
                     .batches = batches,
                     .samples = {DType::f64, DType::f64, {1}, {1}, 0},
                     .optimizer = {.rate = {.base = run.rate}}});
    UnitId const unit{world.rank()};
    *program.store().flat(Part::compute, unit, Version{0}).as<double>() = run.start[std::size_t(world.rank())];
    program.advance(run.windows);
    program.drain();
    out.weights[std::size_t(world.rank())] = weights_of(program, unit)[0];
    if (world.rank() + 1 == stages)
      for (WindowResult const& w : program.history()) out.losses.push_back(w.loss * double(w.counted));
  });
  return out;
}

}  // namespace shardmark::testing
