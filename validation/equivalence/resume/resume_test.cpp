// A resumed run is the run that was never interrupted, bit for bit: samples, losses, learning rate, norms, weights, moments.

#include "app/option_table.hpp"
#include "runs.hpp"

namespace shardmark::testing {
namespace {

using ::testing::HasSubstr;

class Resume : public ResumeTest {
 protected:
  /// 10 updates at once against `first` of them, a checkpoint, and the others.
  void expect_same(Options const& options, int ranks, std::int64_t first) {
    Job const job = job_for(options, ranks);
    Shown const whole = run_leg(options, job, {.updates = 10, .from = {}, .to = {}});
    auto const folder = folder_ / ("run-" + std::to_string(ranks) + "-" + std::to_string(first));
    run_leg(options, job, {.updates = first, .from = {}, .to = folder});
    Shown const resumed = run_leg(options, job, {.updates = 10 - first, .from = folder, .to = {}});
    EXPECT_EQ(resumed.windows.size(), std::size_t(10 - first));
    EXPECT_EQ(resumed.samples.begin()->first, first) << "the first update read";
    EXPECT_EQ(difference_between(whole, resumed), "") << ranks << " ranks, " << first << " updates before";
    EXPECT_NE(whole.windows[std::size_t(first)].loss, whole.windows[std::size_t(first) - 1].loss) << "updates that can be told apart";
  }
};

TEST_F(Resume, case_118_MidEpochWithDropoutAndLearningRate) {
  expect_same(text_options(), 2, 6);  // 4 updates an epoch: in the middle of the second
  expect_same(text_options(), 1, 1);
}

TEST_F(Resume, case_118_AtAnEpochsEndAndBehindAShortUpdate) {
  Options options = text_options();
  expect_same(options, 2, 8);
  options.batch = 12;  // 64 samples: five updates of 12, one of 4
  options.micros = 2;
  options.clip_norm = 0.3;
  expect_same(options, 3, 6);
  expect_same(options, 3, 7);
}

TEST_F(Resume, case_118_OtherOptimizersTypesAndModels) {
  Options options = text_options();
  options.tied_embeddings = true;
  options.optimizer = OptimizerKind::sgd;
  options.momentum = 0.9;
  options.nesterov = true;
  options.lr_schedule = LrSchedule::linear;
  expect_same(options, 2, 5);
  options.momentum = 0;
  options.nesterov = false;
  options.dtype = DType::f64;
  expect_same(options, 2, 3);
  options.dtype = DType::bf16;  // masters in fp32, whose rounded copies are made again
  expect_same(options, 2, 4);
  Options mlp = small_mlp(7);
  mlp.optimizer = OptimizerKind::adamw;
  mlp.warmup = 0;
  mlp.steps = 10;
  expect_same(mlp, 3, 4);
}

/// Running statistics too. Of ranks that normalise themselves each has its own, and rank 0's are saved.
TEST_F(Resume, case_118_RunningStatisticsOfBatchNorm) {
  Options convnet = small_mlp(7);
  convnet.model = ModelKind::convnet;
  convnet.hidden = 4;
  convnet.warmup = 0;
  convnet.steps = 10;
  expect_same(convnet, 1, 4);
  convnet.batch_norm = BatchNormPolicy::sync;
  expect_same(convnet, 3, 4);
}

TEST_F(Resume, WhatThreeRanksSavedAnyNumberLoads) {
  Options const options = text_options();
  Shown const saved = run_leg(options, job_for(options, 3), {.updates = 6, .from = {}, .to = folder_ / "three"});
  for (int ranks : {1, 2, 3, 5}) {
    Job const job = job_for(options, ranks);
    EXPECT_EQ(run_leg(options, job, {.updates = 0, .from = folder_ / "three", .to = {}}).state, saved.state) << ranks;
    // What goes on is a run of that many ranks: its serial twin, which plays them on one rank, has the same bits.
    Shown const there = run_leg(options, job, {.updates = 4, .from = folder_ / "three", .to = {}});
    Shown const twin = run_leg(options, serial_twin(job), {.updates = 4, .from = folder_ / "three", .to = {}});
    EXPECT_EQ(difference_between(twin, there), "") << ranks;
  }
}

TEST_F(Resume, OtherRequestsAreRefusedByName) {
  Options const options = text_options();
  Job const job = job_for(options, 2);
  auto const folder = folder_ / "run";
  run_leg(options, job, {.updates = 6, .from = {}, .to = folder});
  auto const refused = [&](auto change, int ranks = 2) {
    Options other = options;
    other.resume = folder.native();
    change(other);
    return test::refusal_of([&] { require_checkpoints(other, job_for(other, ranks)); });
  };
  EXPECT_EQ(refused([](Options&) {}), "accepted");
  EXPECT_EQ(refused([](Options&) {}, 3), "accepted") << "another number of ranks";
  EXPECT_EQ(refused([](Options& o) { o.micros = 2; }), "accepted");
  EXPECT_THAT(refused([](Options& o) { o.layers = 2; }), HasSubstr("its layers is 1, this run's is 2"));
  EXPECT_THAT(refused([](Options& o) { o.heads = 2; }), HasSubstr("its heads is 3, this run's is 2"));
  EXPECT_THAT(refused([](Options& o) { o.dropout = 0; }), HasSubstr("its dropout is 0.1, this run's is 0"));
  EXPECT_THAT(refused([](Options& o) { o.seed = 2; }), HasSubstr("its seed is 1, this run's is 2"));
  EXPECT_THAT(refused([](Options& o) { o.batch = 8; }), HasSubstr("its global batch is 16, this run's is 8"));
  EXPECT_THAT(refused([](Options& o) { o.lr = 0.02; }), HasSubstr("its lr is 0.01, this run's is 0.02"));
  EXPECT_THAT(refused([](Options& o) { o.weight_decay = 0; }), HasSubstr("its weight-decay is 0.1"));
  EXPECT_THAT(refused([](Options& o) { o.clip_norm = 1; }), HasSubstr("its clip-norm is 0, this run's is 1"));
  EXPECT_THAT(refused([](Options& o) { o.lr_schedule = LrSchedule::constant; }), HasSubstr("its lr-schedule is cosine"));
  EXPECT_THAT(refused([](Options& o) { o.steps = 20; }),
              HasSubstr("number of updates in the learning-rate schedule is 10, this run's is 20"));
  EXPECT_THAT(refused([](Options& o) { o.optimizer = OptimizerKind::sgd; }), HasSubstr("its optimizer is adamw, this run's is sgd"));
  EXPECT_THAT(refused([](Options& o) { o.dtype = DType::f64; }), HasSubstr("its dtype is fp32, this run's is fp64"));
  EXPECT_THAT(refused([](Options& o) { o.seq = 4; }), HasSubstr("its seq is 8, this run's is 4"));
  EXPECT_THAT(refused([&](Options& o) { o.data = "text:" + write("other", test::text_of(folder_ / "text") + "x").native(); }),
              HasSubstr("its data's SHA-256 is"));
  EXPECT_THAT(refused([](Options& o) { o.held_out = 0.5; }), HasSubstr("its number of training samples is 64, this run's is 32"));
  EXPECT_THAT(refused([](Options& o) { o.data = "synthetic"; }), HasSubstr("its data is text, this run's is synthetic"));
  EXPECT_THAT(refused([](Options& o) { o.inject = parse_fault("nan:step=6", "--inject"); }), HasSubstr("--inject at step 6"));
  Options done = options;
  done.lr_schedule = LrSchedule::constant;
  run_leg(done, job_for(done, 2), {.updates = 10, .from = {}, .to = folder_ / "done"});
  done.resume = (folder_ / "done").native();
  EXPECT_THAT(test::refusal_of([&] { require_checkpoints(done, job_for(done, 2)); }), HasSubstr("warmup + steps = 10"));
  done.steps = 11;  // with a constant rate a run can be made longer
  EXPECT_EQ(test::refusal_of([&] { require_checkpoints(done, job_for(done, 2)); }), "accepted");
}

TEST(Launches, WarmUpAgainButTimeAtLeastOneUpdate) {
  Options o;
  o.warmup = 3;
  o.steps = 10;
  for (auto [before, warmup, timed] : {std::array{0, 3, 10}, {4, 3, 6}, {9, 3, 1}, {10, 2, 1}, {12, 0, 1}}) {
    Launch const launch = launch_of(o, before);
    EXPECT_EQ(launch.warmup, warmup) << before;
    EXPECT_EQ(launch.timed, timed) << before;
  }
}

}  // namespace
}  // namespace shardmark::testing
