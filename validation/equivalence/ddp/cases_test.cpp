// Faults that users of other systems met in data-parallel training, as cases.

#include <gtest/gtest.h>

#include <cmath>

#include "app/hooks.hpp"
#include "comm/decorators/delayed.hpp"
#include "model/layers.hpp"
#include "validation/equivalence/ddp/rigs.hpp"

namespace shardmark::testing {
namespace {

/// y = w x with as many weights as inputs, squared error: gradients are what the samples say.
Model linear_model(std::int64_t inputs) {
  Model model{.spec = {}, .blocks = {}, .dtype = DType::f64, .seed = 1};
  UnitId const unit = model.spec.add_unit("w");
  ParamId const w = model.spec.add(unit, "w", {1, inputs}, {}, true);
  std::vector<std::unique_ptr<Layer>> layers;
  layers.push_back(std::make_unique<Linear>(Linear::Parameters{w, {}}, Activation::none, 0));
  layers.push_back(std::make_unique<SquaredErrorLoss>(Linear::slots));
  Block block;
  block.name = "w";
  block.slots = Linear::slots + SquaredErrorLoss::slots;
  block.body = std::make_unique<Chain>(std::move(layers));
  block.produces = {{unit, 0}};
  block.reads = {unit};
  block.boundary = {1};
  model.blocks.push_back(std::move(block));
  return model;
}

/// Samples of each rank, and the sizes of its micro-batches, window after window.
struct Work {
  std::vector<std::vector<FixedBatches::Sample>> samples;
  std::vector<std::vector<std::int64_t>> rows;
  int micros = 1;  // of a window

  int ranks() const { return int(samples.size()); }
  std::size_t windows() const { return rows.front().size() / std::size_t(micros); }
  /// Samples of each window over all ranks: the one denominator.
  std::vector<std::int64_t> counted() const {
    std::vector<std::int64_t> out(windows());
    for (auto const& of_rank : rows)
      for (std::size_t m = 0; m < of_rank.size(); ++m) out[m / std::size_t(micros)] += of_rank[m];
    return out;
  }
};

/// Gives every rank the window's global denominator, whatever its own rows.
class GloballyCounted final : public BatchSource {
 public:
  GloballyCounted(FixedBatches source, std::vector<std::int64_t> counted) : source_(std::move(source)), counted_(std::move(counted)) {}
  HostBatch const& next() override {
    batch_ = source_.next();
    batch_.window_counted = counted_.at(std::size_t(batch_.update) % counted_.size());
    return batch_;
  }

 private:
  FixedBatches source_;
  std::vector<std::int64_t> counted_;
  HostBatch batch_;
};

struct Trained {
  std::vector<std::vector<std::vector<double>>> weights;  // [rank][window]
  std::vector<double> rates;                              // of each window, on rank 0
};

/// Trains from zero, an update a window.
Trained train_windows(Work const& work, OptimizerSettings const& optimizer) {
  std::size_t const inputs = work.samples.front().front().input.size();
  Model const model = linear_model(std::int64_t(inputs));
  Schedule schedule = plan_sequential("ddp", work.micros);
  schedule = bucket(refine(schedule, model.shapes(), {0, 1}), model.shapes(), {});
  schedule = lower(schedule, model.shapes(), axes(Axis::data), Overlap::on);
  Trained out;
  out.weights.resize(work.samples.size());
  run_thread_ranks(work.ranks(), [&](Communicator& world) {
    std::size_t const me = std::size_t(world.rank());
    auto ops = make_reference_backend();
    Bench bench(*ops, world, {.data = work.ranks()});
    GloballyCounted batches(FixedBatches(work.samples[me], work.rows[me], std::size_t(work.micros)), work.counted());
    Program program({.model = model,
                     .schedule = schedule,
                     .ops = *ops,
                     .arena = bench.arena,
                     .mesh = bench.mesh,
                     .batches = batches,
                     .samples = {DType::f64, DType::f64, {std::int64_t(inputs)}, {1}, 0},
                     .optimizer = optimizer});
    for (std::size_t w = 0; w < work.windows(); ++w) {
      program.advance(1);
      out.weights[me].push_back(weights_of(program, UnitId{0}));
    }
    if (me == 0)
      for (WindowResult const& w : program.history()) out.rates.push_back(w.rate);
    program.drain();
  });
  return out;
}

/// Weights of every rank after one update from zero with rate 1.
std::vector<std::vector<double>> one_update(std::vector<std::vector<FixedBatches::Sample>> const& samples,
                                            std::vector<std::vector<std::int64_t>> const& rows, double clip) {
  std::vector<std::vector<double>> out;
  for (auto const& of_rank : train_windows({samples, rows, int(rows.front().size())}, {.clip_norm = clip, .rate = {.base = 1}}).weights)
    out.push_back(of_rank.front());
  return out;
}

TEST(DdpCases, case_03_a_tail_window_is_an_update_by_its_own_count) {
  // Seven samples in windows of four. From w = 0 with rates 2 and 1.75 every sample's gradient is 1, so the updates' gradients are 1 and
  // 1: 0.75 if the tail were divided by four, none or 1.75 if it were dropped or leaked. The schedule makes one step an update: one a
  // micro-batch would give the second update a rate of 1.
  FixedBatches::Sample const early{{1}, {-1}}, late{{1}, {-3}};
  OptimizerSettings const optimizer{.rate = {.base = 2, .shape = RateShape::linear, .updates = 8}};
  std::vector<FixedBatches::Sample> const all{early, early, early, early, late, late, late};
  for (Work const& work : {Work{{all}, {{1, 1, 1, 1, 1, 1, 1, 0}}, 4},  // micro-batches of one
                           Work{{all}, {{3, 1, 2, 1}}, 2},              // ragged
                           Work{{{early, early, late, late}, {early, early, late}}, {{1, 1, 1, 1}, {1, 1, 1, 0}}, 2},   // on two ranks
                           Work{{{early, early, late}, {early, late}, {early, late}}, {{2, 1}, {1, 1}, {1, 1}}, 1}}) {  // on three
    Trained const got = train_windows(work, optimizer);
    EXPECT_EQ(got.rates, (std::vector<double>{2, 1.75}));
    for (auto const& of_rank : got.weights)
      EXPECT_EQ(of_rank, (std::vector<std::vector<double>>{{-2}, {-3.75}})) << work.ranks() << " ranks";
  }
}

TEST(DdpCases, case_09_clips_once_on_the_global_gradient) {
  // Two samples, denominator 2: dy = -t / 2 = 2 each, so the micro-gradients are (2,0) and (0,2).
  FixedBatches::Sample const first{{1, 0}, {-4}}, second{{0, 1}, {-4}};
  double const want = -2 / (std::sqrt(8.0) + 1e-6);
  for (auto const& got : {one_update({{first, second}}, {{1, 1}}, 1), one_update({{first}, {second}}, {{1}, {1}}, 1)})
    for (auto const& weights : got)
      for (double w : weights) EXPECT_DOUBLE_EQ(w, want) << "-0.7071; (0.4472, 0.8944) where each micro-batch is clipped";
}

TEST(DdpCases, case_24_a_gradient_of_an_earlier_micro_batch_is_reduced) {
  // Each rank's second micro-batch is empty: the only gradients, 1 and 3 of two samples, come from the first.
  auto const got = one_update({{{{1}, {-1}}}, {{{1}, {-3}}}}, {{1, 0}, {1, 0}}, 0);
  EXPECT_EQ(got[0], std::vector<double>{-2});
  EXPECT_EQ(got[1], std::vector<double>{-2});
}

TEST(DdpCases, case_26_a_nan_on_one_rank_skips_the_update_on_all) {
  Options options = small_mlp(6);
  Job const job = ddp_job(options, 3);
  std::vector<InjectHook> faults;
  for (int r = 0; r < 3; ++r) faults.emplace_back(Fault{.kind = Fault::Kind::nan, .rank = 1, .step = 2, .tensor = ""}, r);
  std::vector<Hook*> hooks;
  for (auto& f : faults) hooks.push_back(&f);
  std::vector<std::vector<double>> before(3), after(3), later(3);
  std::vector<std::vector<bool>> skipped(3);
  on_ranks(
      job,
      [&](Rig& rig, int rank) {
        auto const r = std::size_t(rank);
        rig.program().advance(1);
        before[r] = all_weights(rig.program());
        rig.program().advance(1);
        after[r] = all_weights(rig.program());
        rig.program().advance(1);
        later[r] = all_weights(rig.program());
        for (WindowResult const& w : rig.program().history()) skipped[r].push_back(w.skipped);
        rig.program().drain();
      },
      hooks);
  for (std::size_t r = 0; r < 3; ++r) {
    EXPECT_EQ(skipped[r], (std::vector<bool>{false, true, false}));
    EXPECT_EQ(after[r], before[r]) << "the update with the NaN was taken on rank " << r;
    EXPECT_NE(later[r], after[r]);
    EXPECT_EQ(later[r], later[0]);
  }
}

TEST(DdpCases, case_28_bucket_sizes_and_case_61_overlap_with_delays_change_no_bit) {
  Options options = small_mlp(7);
  options.micros = 2;
  auto const variant = [&](double bucket_mib, bool overlap, Wrap const& wrap) {
    Options o = options;
    o.bucket_mib = bucket_mib;
    o.overlap = overlap;
    return train(ddp_job(o, 3), 4, wrap);
  };
  auto const want = variant(25, false, {});
  EXPECT_EQ(want[1], want[0]);
  for (double mib : {1.0 / 1024, 1.0, 1000.0}) EXPECT_EQ(variant(mib, true, {}), want) << mib << " MiB";
  for (std::uint64_t seed : {1, 2})
    EXPECT_EQ(variant(1.0 / 1024, true, [seed](Communicator& world) { return make_delayed(world, {.seed = seed}); }), want)
        << "delays " << seed;
}

TEST(DdpCases, ranks_first_is_another_order_of_sums_from_two_micro_batches_on) {
  auto const weights = [](int micros, Inside order) {
    Options options = small_mlp(13);
    options.micros = micros;
    options.reduce_order = order;
    return train(ddp_job(options, 3), 2);
  };
  for (int micros : {1, 2, 3, 4}) {
    auto const last = weights(micros, Inside::micros), first = weights(micros, Inside::replicas);
    for (auto const& rank : first) EXPECT_EQ(rank, first.front()) << micros;
    EXPECT_EQ(last == first, micros == 1) << micros;
  }
}

TEST(DdpCases, case_58_norms_and_biases_do_not_decay) {
  Model const model = make_gpt({.layers = 1, .hidden = 12, .heads = 2, .seq = 4, .vocab = 11}, DType::f64, 3, InitialStyle::verifying);
  auto ops = make_reference_backend();
  auto world = make_self();
  Bench bench(*ops, *world, {});
  auto stream = ops->stream();
  bench.arena.watch(*stream);
  ParameterStore store(model.spec, model.units_of(0, 3), model.backward_order(0, 3), {}, {}, {.compute = DType::f64, .states = 2},
                       bench.arena, *ops, *stream);
  initialise(model, store, *ops, *stream);
  Tensor s = bench.arena.make(DType::f64, {scalars}, Book::workspace, *stream);
  ops->run(*stream, Fill{s.view, 0});
  double const rate = 0.25, decay = 0.5;
  s.view.as<double>()[int(Scalar::learning_rate)] = rate;
  s.view.as<double>()[int(Scalar::clip)] = 1;
  s.view.as<double>()[int(Scalar::update)] = 1;
  for (UnitId unit : store.held()) {
    UnitSpec const& spec = model.spec[unit];
    View const w = store.flat(Part::compute, unit, Version{0});
    std::vector<double> const start = values_of(w);
    View const gradient = store.gradients().total({unit, 0});
    ops->run(*stream, Fill{gradient, 0});
    ops->run(*stream, AdamWUpdate{.weight = w,
                                  .gradient = gradient,
                                  .first = store.flat(Part::state0, unit, {}),
                                  .second = store.flat(Part::state1, unit, {}),
                                  .out = w,
                                  .compute = {},
                                  .scalars = s.view,
                                  .decay = decay,
                                  .decay_from = 0,
                                  .decay_to = spec.decaying});
    std::vector<double> const end = values_of(w);
    for (ParamId id : spec.params) {
      ParamSpec const& p = model.spec[id];
      double const factor = p.full.size() == 2 ? 1 - rate * decay : 1;
      for (std::int64_t i = p.offset; i < p.offset + p.elements(); ++i)
        ASSERT_DOUBLE_EQ(end[std::size_t(i)], start[std::size_t(i)] * factor) << p.name;
    }
  }
}

TEST(DdpCases, case_71_replicas_that_start_apart_are_made_equal) {
  Options options = small_mlp(6);
  std::vector<std::uint64_t> apart(3), together(3);
  run_thread_ranks(3, [&](Communicator& world) {
    Options mine = options;
    mine.seed = 1 + std::uint64_t(world.rank());
    Job job = ddp_job(options, 3);
    job.model = build_model(mine, job.data->shape(), DType::f32, JobPurpose::proof);
    auto ops = make_reference_backend();
    Rig rig(job, {.ops = *ops, .world = world});
    auto const r = std::size_t(world.rank());
    apart[r] = rig.program().weights_hash();
    rig.program().make_replicas_equal();
    together[r] = rig.program().weights_hash();
  });
  EXPECT_NE(apart[1], apart[0]);
  EXPECT_NE(apart[2], apart[1]);
  EXPECT_EQ(together[0], apart[0]) << "rank 0's weights are the ones that stay";
  EXPECT_EQ(together[1], together[0]);
  EXPECT_EQ(together[2], together[0]);
}

TEST(DdpCases, case_50_a_batch_smaller_than_the_ranks_weighs_each_sample_alike) {
  Options options = small_mlp(3);
  auto const got = train(ddp_job(options, 4), 3);
  Job const job = ddp_job(options, 4);
  std::vector<double> serial;
  on_ranks(serial_twin(job), [&](Rig& rig, int) {
    rig.program().advance(3);
    serial = all_weights(rig.program());
    rig.program().drain();
  });
  for (auto const& rank : got) EXPECT_EQ(rank, serial);
}

TEST(DdpCases, case_25_reductions_per_update_are_the_buckets) {
  Options options = small_mlp(8);
  options.micros = 4;
  options.bucket_mib = 1.0 / 1024;
  Job const job = ddp_job(options, 2);
  on_ranks(job, [&](Rig& rig, int) {
    rig.program().advance(3);
    EXPECT_EQ(rig.program().reductions_posted(), 3 * std::int64_t(job.schedule.buckets.front().size()));
    EXPECT_GT(job.schedule.buckets.front().size(), 1u);
    rig.program().drain();
  });
}

}  // namespace
}  // namespace shardmark::testing
