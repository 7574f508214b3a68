// Running statistics of batch normalisation in closed form: one channel of given samples, a linear layer behind it.

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "model/batch_norm.hpp"
#include "model/layers.hpp"
#include "model/pieces.hpp"
#include "validation/equivalence/core/harness.hpp"
#include "validation/schedule/core/planners.hpp"

namespace shardmark::testing {
namespace {

constexpr BatchNormPolicy per_micro = BatchNormPolicy::per_micro, deferred = BatchNormPolicy::deferred;

Block finish(Model const& model, UnitId unit) {
  Block block;
  block.name = model.spec[unit].name;
  block.produces = {{unit, 0}};
  block.reads = {unit};
  block.boundary = {1};
  return block;
}

/// Batch normalisation of the data itself, then w x + b against the target: two blocks.
Model normalised_data() {
  Model model{.spec = {}, .blocks = {}, .dtype = DType::f64, .seed = 1};
  UnitId const norm = model.spec.add_unit("norm"), head = model.spec.add_unit("head");
  BatchNormParts parts;
  parts.gamma = model.spec.add(norm, "norm.weight", {1}, {Initial::Kind::one}, false);
  parts.beta = model.spec.add(norm, "norm.bias", {1}, {}, false);
  parts.running = model.spec.add_running(norm, "norm", 1);
  Block first = finish(model, norm);
  first.body = std::make_unique<BatchStatistics>(parts);
  first.merged = std::make_unique<BatchNormalise>(parts);
  first.slots = batch_norm_slots;
  model.blocks.push_back(std::move(first));
  ParamId const w = model.spec.add(head, "head.weight", {1, 1}, {Initial::Kind::one}, true);
  Block last = finish(model, head);
  std::vector<std::unique_ptr<Layer>> layers;
  layers.push_back(std::make_unique<Linear>(Linear::Parameters{w, {}}, Activation::none, 0));
  layers.push_back(std::make_unique<SquaredErrorLoss>(Linear::slots));
  last.body = std::make_unique<Chain>(std::move(layers));
  last.slots = Linear::slots + SquaredErrorLoss::slots;
  model.blocks.push_back(std::move(last));
  return model;
}

struct Statistics {
  double mean = 0, variance = 0;
  std::int64_t batches = 0;
  double evaluated = 0;  // loss of the first micro-batch's samples, with them
};

Statistics statistics_of(ParameterStore const& store) {
  RunningBuffers const& running = store.spec().running.front();
  return {*store.buffer(running.mean).as<double>(), *store.buffer(running.variance).as<double>(),
          *store.buffer(running.batches).as<std::int64_t>(), 0};
}

/// After `windows` windows of `samples`, rows[m] of them in micro-batch m; each lane is a thread rank.
Statistics train(Schedule const& coarse, BatchNormPolicy policy, std::vector<double> const& samples, std::vector<std::int64_t> const& rows,
                 std::int64_t windows = 1) {
  Model const model = normalised_data();
  int const stages = int(coarse.lanes.size());
  Schedule schedule = refine(coarse, model.shapes(), stages == 1 ? std::vector{0, 2} : std::vector{0, 1, 2});
  schedule = lower(schedule, model.shapes(), 0, Overlap::off);
  check(schedule, model.shapes());
  std::vector<FixedBatches::Sample> data;
  for (double x : samples) data.push_back({{x}, {0.5}});
  Statistics out;
  std::mutex mutex;
  run_thread_ranks(stages, [&](Communicator& world) {
    auto ops = make_reference_backend();
    Bench bench(*ops, world, {.pipeline = stages});
    FixedBatches batches(data, rows, std::size_t(schedule.micros_per_update()));
    Program program({.model = model,
                     .schedule = schedule,
                     .lane = world.rank(),
                     .ops = *ops,
                     .arena = bench.arena,
                     .mesh = bench.mesh,
                     .batches = batches,
                     .samples = {DType::f64, DType::f64, {1}, {1}, 0},
                     .optimizer = {.rate = {.base = 0.125}},
                     .batch_norm = policy});
    program.advance(windows);
    program.drain();
    double const loss = program.evaluate(FixedBatches(data, rows, 1).next())[0];
    std::lock_guard const lock(mutex);
    double const evaluated = out.evaluated + loss;
    if (world.rank() == 0) out = statistics_of(program.store());  // the stage with the block holds its buffers
    out.evaluated = evaluated;
  });
  return out;
}

/// Momentum 0.1 from mean 0: a batch whose mean is 1 moves it to 0.1, once, whether its forward is run again or not (twice: 0.19).
TEST(RunningStatistics, case_8_a_recomputation_does_not_move_them_again) {
  for (BatchNormPolicy const policy : {per_micro, deferred})
    for (Schedule const& plan : {plan_sequential("serial", 1), plan_gpipe({2, 1}), plan_1f1b({2, 1})})
      for (Schedule const& schedule : {plan, test::with_recomputation(plan)}) {
        Statistics const got = train(schedule, policy, {0, 2}, {2});
        EXPECT_EQ(got.mean, 0.1);
        EXPECT_DOUBLE_EQ(got.variance, 0.9 + 0.1 * 2);
        EXPECT_EQ(got.batches, 1);
      }
}

/// Micro-batches {0} and {3,6,9}: each by itself moves them by means 0 and 6 and one variance, 9.
TEST(RunningStatistics, per_micro_they_move_with_each_in_turn) {
  for (Schedule const& plan : {plan_sequential("serial", 2), plan_gpipe({2, 2}), plan_1f1b({2, 2})}) {
    Statistics const got = train(plan, per_micro, {0, 3, 6, 9}, {1, 3});
    EXPECT_DOUBLE_EQ(got.mean, 0.1 * 6);
    EXPECT_DOUBLE_EQ(got.variance, 1 + 0.1 * (9 - 1));
    EXPECT_EQ(got.batches, 2);
  }
}

/// Together their mean is 4.5 and their variance 45/4 = 11.25, unbiased 45/3 = 15. Micro-batches without samples aren't seen.
TEST(RunningStatistics, deferred_they_move_once_an_update_by_counts) {
  for (auto const& rows : std::vector<std::vector<std::int64_t>>{{1, 3}, {3, 1}, {4}, {0, 1, 3}, {1, 0, 3}, {1, 3, 0}, {1, 1, 1, 1}}) {
    int const micros = int(rows.size());
    for (Schedule const& plan :
         {plan_sequential("serial", micros), plan_gpipe({2, micros}), plan_gpipe({2, micros}, BackwardOrder::oldest_first),
          plan_1f1b({2, micros}), plan_model_parallel({2, micros})}) {
      Statistics const got = train(plan, deferred, {0, 3, 6, 9}, rows);
      EXPECT_DOUBLE_EQ(got.mean, 0.1 * 4.5);
      EXPECT_DOUBLE_EQ(got.variance, 1 + 0.1 * (15 - 1));
      EXPECT_EQ(got.batches, 1);
    }
  }
}

TEST(RunningStatistics, deferred_they_stay_when_no_micro_batch_has_samples_or_one_value) {
  Statistics const none = train(plan_sequential("serial", 2), deferred, {7}, {0, 0});
  EXPECT_EQ(none.mean, 0);
  EXPECT_EQ(none.variance, 1);
  EXPECT_EQ(none.batches, 0);
  Statistics const one = train(plan_sequential("serial", 2), deferred, {7}, {0, 1});
  EXPECT_DOUBLE_EQ(one.mean, 0.7);
  EXPECT_EQ(one.variance, 1) << "one value has no unbiased variance";
}

/// The stage that holds them normalises with them; the next one makes the loss.
TEST(RunningStatistics, evaluation_through_stages_uses_them) {
  std::vector<double> const samples{0, 3, 6, 9};
  double one_stage[2] = {};
  for (BatchNormPolicy const policy : {per_micro, deferred}) {
    double& want = one_stage[policy == deferred ? 1 : 0];
    want = train(plan_sequential("serial", 2), policy, samples, {2, 2}, 3).evaluated;
    for (Schedule const& plan : {plan_gpipe({2, 2}), test::with_recomputation(plan_gpipe({2, 2})), plan_1f1b({2, 2})})
      EXPECT_EQ(train(plan, policy, samples, {2, 2}, 3).evaluated, want);
  }
  EXPECT_GT(one_stage[0], 0);
  EXPECT_NE(one_stage[0], one_stage[1]) << "which statistics shows in the loss";
}

/// Micro-batches of the next update are forwarded before this one's is decided: each moves by its own. Updates of {0,3}, {6,9}, {0,3}.
TEST(RunningStatistics, deferred_updates_under_way_at_once_stay_apart) {
  std::vector<double> const samples{0, 3, 6, 9};
  Statistics const want = train(plan_sequential("serial", 2), deferred, samples, {1, 1}, 3);
  EXPECT_DOUBLE_EQ(want.mean, 0.9 * (0.9 * 0.15 + 0.75) + 0.15);
  EXPECT_EQ(want.batches, 3);
  Statistics const got = train(plan_pipedream({2, 2}, Delay::two_buffers), deferred, samples, {1, 1}, 3);
  EXPECT_EQ(got.mean, want.mean);
  EXPECT_EQ(got.variance, want.variance);
  EXPECT_EQ(got.batches, want.batches);
}

/// One rank's DeferredStatistics without a program.
class Deferred : public ::testing::Test {
 protected:
  static constexpr int micros = 4;
  struct Rig {
    Rig()
        : model(normalised_data()),
          ops(make_reference_backend()),
          pages(1 << 20),
          arena({pages.data(), pages.bytes(), Place::host, Book::workspace}, ledger),
          store((arena.watch(stream), model.spec), {UnitId{0}}, {{UnitId{0}, 0}}, {}, {1, micros}, {.compute = DType::f64}, arena, *ops,
                stream),
          statistics(store, {1, micros}, 2, *ops, arena, stream) {}
    void put(int micro, std::array<double, 3> const& moments) {
      MicroBatch batch;
      batch.id = MicroId{micro};
      LocalPieces pieces(1);
      LocalTensorGroup uncut(1);
      Context context{
          .ops = *ops, .stream = stream, .arena = arena, .store = store, .version = {}, .micro = batch, .pieces = pieces, .tensor = uncut};
      Tensor const tensor = arena.make(DType::f64, {3}, Book::workspace, stream);
      std::copy(moments.begin(), moments.end(), tensor.view.as<double>());
      statistics.put(model.spec.running.front(), tensor, context);
    }
    Model model;
    std::unique_ptr<Backend> ops;
    HostStream stream{0};
    Pages pages;
    Ledger ledger;
    Arena arena;
    ParameterStore store;
    DeferredStatistics statistics;
  };
  /// Means far apart, so that the order of a merge shows in its last bits.
  static std::array<double, 3> moments(int micro) { return {micro + 1.0, std::pow(-10, micro) / 7, 0.7 * micro}; }
};

TEST_F(Deferred, any_order_of_arrival_gives_the_same_bits) {
  std::vector<int> order{0, 1, 2, 3};
  std::vector<Statistics> all;
  do {
    Rig rig;
    for (int micro : order) rig.put(micro, moments(micro));
    rig.statistics.move(0);
    all.push_back(statistics_of(rig.store));
  } while (std::next_permutation(order.begin(), order.end()));
  ASSERT_EQ(all.size(), 24u);
  for (Statistics const& got : all) {
    EXPECT_EQ(got.mean, all.front().mean);
    EXPECT_EQ(got.variance, all.front().variance);
  }
  Rig descending;
  for (int micro = 0; micro < micros; ++micro) descending.put(micro, moments(micros - 1 - micro));
  descending.statistics.move(0);
  Statistics const other = statistics_of(descending.store);
  EXPECT_NE(std::pair(other.mean, other.variance), std::pair(all.front().mean, all.front().variance)) << "the order of the merge shows";
}

TEST_F(Deferred, a_micro_batch_that_is_missing_or_comes_twice_ends_the_run) {
  Rig rig;
  for (int micro = 0; micro + 1 < micros; ++micro) rig.put(micro, moments(micro));
  EXPECT_THROW(rig.put(0, moments(0)), Error);
  EXPECT_THROW(rig.statistics.move(0), Error);
  rig.put(micros, moments(0));  // of the next update
  EXPECT_THROW(rig.statistics.move(0), Error);
  rig.put(micros - 1, moments(micros - 1));
  rig.statistics.move(0);
  EXPECT_THROW(rig.statistics.move(0), Error);
}

}  // namespace
}  // namespace shardmark::testing
