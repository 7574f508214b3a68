#pragma once
// Trains a small gpt under any schedule on thread ranks, one a lane, and hands out what came of it.

#include <gtest/gtest.h>

#include "data/dataset.hpp"
#include "model/zoo.hpp"
#include "run/job.hpp"
#include "schedule/check.hpp"
#include "validation/equivalence/core/harness.hpp"

namespace shardmark::testing {

inline constexpr std::int64_t batch = 7;

class Loaded final : public BatchSource {
 public:
  Loaded(Dataset const& data, Cut cut) : sampler_(data.size(), batch, 3), loader_(data, sampler_, cut, 0) {}
  HostBatch const& next() override { return loader_.next(); }

 private:
  Sampler sampler_;
  Loader loader_;
};

struct Outcome {
  std::vector<std::vector<double>> weights;  // by unit
  std::vector<double> losses, norms;         // of each update; norms where every rank knows them
  std::vector<bool> skipped;
  std::array<double, 3> evaluated{};  // loss sum, counted, correct
};

using MakeBackend = std::function<std::unique_ptr<Backend>(int rank)>;

inline MakeBackend const reference = [](int) { return make_reference_backend(); };

struct Training {
  Schedule coarse;
  std::vector<int> first_block;  // of four blocks
  OptimizerSettings optimizer;
  Tied tied = Tied::yes;
  Cut cut = {};
  std::int64_t windows = 4;
  MakeBackend make = reference;
  std::function<Hook*(int rank)> hook = {};  // absent: none
};

inline Outcome train(Training const& t) {
  Model const model = make_gpt({.layers = 2, .hidden = 24, .heads = 3, .seq = 9, .vocab = 31, .dropout = 0.1, .tied = t.tied}, DType::f32,
                               7, InitialStyle::verifying);
  auto const data = make_synthetic_tokens(5, 18, 9, 31, Ragged::yes);
  auto const blocks = model.shapes();
  Schedule schedule = bucket(refine(t.coarse, blocks, t.first_block), blocks, {});
  schedule = lower(schedule, blocks, 0, Overlap::off);
  check(schedule, blocks);

  Outcome out;
  out.weights.resize(model.spec.units.size());
  std::mutex mutex;
  int const stages = int(schedule.lanes.size());
  run_thread_ranks(stages, [&](Communicator& world) {
    auto ops = t.make(world.rank());
    Bench bench(*ops, world, {.pipeline = stages}, named_groups(schedule, blocks));
    Loaded batches(*data, t.cut);
    Program program({.model = model,
                     .schedule = schedule,
                     .lane = world.rank(),
                     .ops = *ops,
                     .arena = bench.arena,
                     .mesh = bench.mesh,
                     .batches = batches,
                     .samples = data->shape(),
                     .optimizer = t.optimizer,
                     .hooks = t.hook ? std::vector{t.hook(world.rank())} : std::vector<Hook*>{}});
    for (std::int64_t w = 0; w < t.windows; ++w) program.advance(1);
    program.drain();
    Evaluation held_out(*data, 4, 1, 0);
    auto const tally = program.evaluate(held_out.read(0));
    std::lock_guard lock(mutex);
    for (std::size_t i = 0; i < tally.size(); ++i) out.evaluated[i] += tally[i];
    for (UnitId unit : program.store().held()) {
      auto values = weights_of(program, unit);
      auto& seen = out.weights[std::size_t(unit.v)];
      if (!seen.empty()) {
        EXPECT_EQ(seen, values) << "holders of " << model.spec[unit].name << " drifted apart";
      }
      seen = std::move(values);
    }
    if (!program.sees_loss()) return;
    Outcome seen_here;
    for (WindowResult const& w : program.history()) {
      seen_here.losses.push_back(w.loss);
      seen_here.norms.push_back(w.norm);
      seen_here.skipped.push_back(w.skipped);
    }
    if (!out.losses.empty()) {
      EXPECT_EQ(out.losses, seen_here.losses) << "ranks disagree";
      EXPECT_EQ(out.norms, seen_here.norms) << "ranks disagree";
      EXPECT_EQ(out.skipped, seen_here.skipped) << "ranks disagree";
    }
    out.losses = seen_here.losses;
    out.norms = schedule.decides_jointly() ? seen_here.norms : std::vector<double>{};
    out.skipped = seen_here.skipped;
  });
  return out;
}

inline void expect_equal(Outcome const& got, Outcome const& want) {
  EXPECT_EQ(got.losses, want.losses);
  EXPECT_GT(want.evaluated[1], 0);
  EXPECT_EQ(got.evaluated, want.evaluated);
  for (std::size_t u = 0; u < want.weights.size(); ++u) EXPECT_EQ(got.weights[u], want.weights[u]) << "unit " << u;
}

}  // namespace shardmark::testing
