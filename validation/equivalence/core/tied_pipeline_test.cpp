// Hard test 2: a two-stage flush pipeline with a tied weight equals serial, bit for bit: sums, holders, and the order of everything,
// also when streams run as adversely as events allow.

#include <gtest/gtest.h>

#include "backend/decorators/adversarial.hpp"
#include "data/dataset.hpp"
#include "model/zoo.hpp"
#include "validation/equivalence/core/harness.hpp"
#include "validation/schedule/core/planners.hpp"

namespace shardmark::testing {
namespace {

constexpr std::int64_t windows = 4, batch = 7;

class Loaded final : public BatchSource {
 public:
  Loaded(Dataset const& data, int micros) : sampler_(data.size(), batch, 3), loader_(data, sampler_, {.micros = micros}, 0) {}
  HostBatch const& next() override { return loader_.next(); }

 private:
  Sampler sampler_;
  Loader loader_;
};

struct Outcome {
  std::vector<std::vector<double>> weights;  // by unit
  std::vector<double> losses;
};

using MakeBackend = std::function<std::unique_ptr<Backend>(int rank)>;

Outcome train(Schedule const& coarse, std::vector<int> const& first_block, int stages, OptimizerSettings optimizer,
              MakeBackend const& make) {
  Model const model =
      make_gpt({.layers = 2, .hidden = 24, .heads = 3, .seq = 9, .vocab = 31, .tied = Tied::yes}, DType::f32, 7, InitialStyle::verifying);
  auto const data = make_synthetic_tokens(5, 18, 9, 31, Ragged::yes);
  auto const blocks = model.shapes();
  Schedule schedule = bucket(refine(coarse, blocks, first_block), blocks, {});
  schedule = lower(schedule, blocks, 0, Overlap::off);
  check(schedule, blocks);
  std::vector<NamedGroup> groups;
  for (TiedUnit const& tied : tied_units(blocks, schedule.lane_of_chunk))
    if (tied.shared()) groups.push_back({tied_group(tied.unit), tied.holders()});

  Outcome out;
  out.weights.resize(model.spec.units.size());
  std::mutex mutex;
  run_thread_ranks(stages, [&](Communicator& world) {
    auto ops = make(world.rank());
    Bench bench(*ops, world, {.pipeline = stages}, groups);
    Loaded batches(*data, schedule.micros_per_window);
    Program program({.model = model,
                     .schedule = schedule,
                     .lane = world.rank(),
                     .ops = *ops,
                     .arena = bench.arena,
                     .mesh = bench.mesh,
                     .batches = batches,
                     .samples = data->shape(),
                     .optimizer = optimizer});
    program.advance(windows);
    program.drain();
    std::lock_guard lock(mutex);
    for (UnitId unit : program.store().held()) {
      auto values = weights_of(program, unit);
      auto& seen = out.weights[std::size_t(unit.v)];
      if (!seen.empty()) {
        EXPECT_EQ(seen, values) << "holders of " << model.spec[unit].name << " drifted apart";
      }
      seen = std::move(values);
    }
    if (world.rank() + 1 == stages)
      for (WindowResult const& w : program.history()) out.losses.push_back(w.loss);
  });
  return out;
}

MakeBackend const reference = [](int) { return make_reference_backend(); };

void expect_equal(Outcome const& got, Outcome const& want) {
  EXPECT_EQ(got.losses, want.losses);
  for (std::size_t u = 0; u < want.weights.size(); ++u) EXPECT_EQ(got.weights[u], want.weights[u]) << "unit " << u;
}

class TiedPipeline : public ::testing::TestWithParam<int> {};

TEST_P(TiedPipeline, case_14_two_stages_equal_serial_bitwise) {
  int const micros = GetParam();
  OptimizerSettings const sgd{.momentum = 0.9, .clip_norm = 0.5, .rate = {.base = 0.1}};
  Outcome const serial = train(plan_sequential("serial", micros), {0, 4}, 1, sgd, reference);
  ASSERT_EQ(serial.losses.size(), std::size_t(windows));
  EXPECT_NE(serial.losses.front(), serial.losses.back());
  expect_equal(train(test::plan_1f1b(2, micros), {0, 2, 4}, 2, sgd, reference), serial);
  expect_equal(train(test::plan_gpipe(2, micros), {0, 1, 4}, 2, sgd, reference), serial);
}

TEST_P(TiedPipeline, under_adversarial_streams) {
  int const micros = GetParam();
  OptimizerSettings const adamw{.rule = Rule::adamw, .rate = {.base = 1e-2}};
  Outcome const serial = train(plan_sequential("serial", micros), {0, 4}, 1, adamw, reference);
  for (std::uint64_t seed : {1, 2, 3}) {
    // The inner backend of each rank outlives the adversary around it.
    std::vector<std::unique_ptr<Backend>> inner;
    for (int r = 0; r < 2; ++r) inner.push_back(make_reference_backend());
    auto const adversarial = [&](int rank) { return make_adversarial_backend(*inner[std::size_t(rank)], seed + 10 * std::uint64_t(rank)); };
    expect_equal(train(test::plan_1f1b(2, micros), {0, 2, 4}, 2, adamw, adversarial), serial);
  }
}

INSTANTIATE_TEST_SUITE_P(Micros, TiedPipeline, ::testing::Values(1, 3, 4, 6));

}  // namespace
}  // namespace shardmark::testing
