// Faults that users of other systems met in batch normalisation, as cases.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "backend/decorators/dense.hpp"
#include "model/zoo.hpp"
#include "schedule/planners.hpp"
#include "validation/equivalence/ddp/rigs.hpp"

namespace shardmark::testing {
namespace {

constexpr ImageShape image{2, 5, 4};
constexpr std::int64_t classes = 5;

Model small_convnet() {
  return make_convnet({.layers = 2, .hidden = 3, .image = image, .classes = classes}, DType::f64, 1, InitialStyle::verifying);
}

/// The first samples of a data set, cut as a test says: rows[m] of micro-batch m, after `skipped` of other ranks.
class CutByHand final : public BatchSource {
 public:
  CutByHand(std::vector<std::int64_t> rows, std::int64_t skipped, std::int64_t total)
      : data_(make_synthetic_images(3, 64, {image.channels, image.height, image.width}, classes)),
        rows_(std::move(rows)),
        next_(skipped),
        skipped_(skipped),
        total_(total) {}

  HostBatch const& next() override {
    std::size_t const pixels = std::size_t(image.elements()) * sizeof(float);
    if (at_ == rows_.size()) at_ = 0, next_ = skipped_;
    batch_ = {};
    batch_.rows = batch_.counted = rows_[at_++];
    batch_.window_counted = total_;
    batch_.input.resize(std::size_t(batch_.rows) * pixels);
    batch_.target.resize(std::size_t(batch_.rows) * sizeof(std::int32_t));
    std::span<std::byte> const input = batch_.input, target = batch_.target;
    for (std::size_t r = 0; r < std::size_t(batch_.rows); ++r, ++next_) {
      data_->read(next_, input.subspan(r * pixels, pixels), target.subspan(r * sizeof(std::int32_t), sizeof(std::int32_t)));
      batch_.samples.insert(batch_.samples.end(), {0, next_});
    }
    return batch_;
  }
  SampleShape const& shape() const { return data_->shape(); }

 private:
  std::unique_ptr<Dataset> data_;
  std::vector<std::int64_t> rows_;
  std::int64_t next_, skipped_, total_;
  std::size_t at_ = 0;
  HostBatch batch_;
};

struct Outcome {
  std::vector<double> weights, buffers;
};

std::vector<double> all_buffers(Program& program) {
  std::vector<double> out;
  auto const& specs = program.store().spec().buffers;
  for (std::size_t b = 0; b < specs.size(); ++b) {
    View const view = program.store().buffer(BufferId{std::int32_t(b)});
    for (std::int64_t i = 0; i < view.elements(); ++i)
      out.push_back(view.dtype == DType::i64 ? double(view.as<std::int64_t>()[i]) : view.as<double>()[i]);
  }
  return out;
}

/// Each rank's weights and buffers after `windows` updates; rows[r][m] samples for micro-batch m of rank r.
std::vector<Outcome> train_convnet(std::vector<std::vector<std::int64_t>> const& rows, BatchNormPolicy policy, Schedule coarse,
                                   std::int64_t windows) {
  int const ranks = int(rows.size());
  Model const model = small_convnet();
  auto const blocks = model.shapes();
  Schedule schedule = bucket(refine(std::move(coarse), blocks, {0, int(blocks.size())}), blocks, {});
  schedule = lower(schedule, blocks, axes(Axis::data), Overlap::on);
  std::vector<std::int64_t> skipped{0};
  for (auto const& of_rank : rows) {
    skipped.push_back(skipped.back());
    for (std::int64_t r : of_rank) skipped.back() += r;
  }
  std::vector<Outcome> out(rows.size());
  run_thread_ranks(ranks, [&](Communicator& world) {
    auto const me = std::size_t(world.rank());
    auto ops = make_reference_backend();
    Bench bench(*ops, world, {.data = ranks});
    CutByHand batches(rows[me], skipped[me], skipped.back());
    Program program({.model = model,
                     .schedule = schedule,
                     .ops = *ops,
                     .arena = bench.arena,
                     .mesh = bench.mesh,
                     .batches = batches,
                     .samples = batches.shape(),
                     .optimizer = {.rate = {.base = 0.1}},
                     .batch_norm = policy});
    program.advance(windows);
    program.drain();
    out[me] = {all_weights(program), all_buffers(program)};
  });
  return out;
}

void expect_near(std::vector<double> const& a, std::vector<double> const& b) {
  ASSERT_EQ(a.size(), b.size());
  for (std::size_t i = 0; i < a.size(); ++i) EXPECT_NEAR(a[i], b[i], 1e-12 * (1 + std::abs(b[i]))) << i;
}

/// Pieces {0} and {3,6,9} of one channel, on two ranks: by counts, not a mean of means (3) nor of variances.
TEST(BatchNormCases, case_16_pieces_are_merged_by_their_counts) {
  run_thread_ranks(2, [](Communicator& world) {
    auto ops = make_reference_backend();
    Bench memory(*ops, world, {.data = 2});
    auto stream = ops->stream();
    shardmark::Bench bench(*ops, *stream);
    Dense x{world.rank() == 0 ? 1 : 3, 1}, moments{3}, merged{3}, mean{1}, rstd{1}, running_mean{1}, running_variance{1};
    for (std::int64_t i = 0; i < x.elements(); ++i) x[i] = world.rank() == 0 ? 0 : 3.0 * double(i + 1);
    bench.run(BatchMoments{x.view(), moments.view()});
    std::vector<double> all(6);
    memory.arena.watch(*stream);
    all_gather(world, memory.arena, *stream, moments.values(), all);
    Dense pieces{2, 3};
    pieces.values() = all;
    bench.run(MergeMoments{pieces.view(), merged.view(), mean.view(), rstd.view(), 0});
    EXPECT_EQ(merged[0], 4);
    EXPECT_EQ(mean[0], 4.5);
    EXPECT_EQ(merged[2] / 4, 11.25);
    EXPECT_DOUBLE_EQ(rstd[0], 1 / std::sqrt(11.25));
    std::int64_t batches = 0, one = 1;
    bench.run(RunningUpdate{merged.view(), running_mean.view(), running_variance.view(),
                            view_at(reinterpret_cast<std::byte*>(&batches), nullptr, DType::i64, {&one, 1}), 1});
    EXPECT_EQ(running_mean[0], 4.5);
    EXPECT_EQ(running_variance[0], 15);
    EXPECT_EQ(batches, 1);
  });
}

TEST(BatchNormCases, case_16_one_value_has_no_unbiased_variance) {
  auto ops = make_reference_backend();
  HostStream stream(0);
  shardmark::Bench bench(*ops, stream);
  std::int64_t batches = 3, one = 1;
  Dense moments{3}, mean{1}, variance{1};
  View const counter = view_at(reinterpret_cast<std::byte*>(&batches), nullptr, DType::i64, {&one, 1});
  variance[0] = 0.5;
  for (double n : {1.0, 0.0}) {
    moments.values() = {n, n == 0 ? 0.0 : 8.0, 0};
    bench.run(RunningUpdate{moments.view(), mean.view(), variance.view(), counter, 0.25});
    EXPECT_EQ(mean[0], 2);
    EXPECT_EQ(variance[0], 0.5);
    EXPECT_EQ(batches, 4) << "a batch without values is none";
  }
}

/// A second forward begins with a broadcast of buffers; what the first backward needs isn't among them.
TEST(BatchNormCases, case_30_two_forwards_before_one_backward_give_the_same_gradients) {
  for (auto const policy : {BatchNormPolicy::per_micro, BatchNormPolicy::deferred, BatchNormPolicy::sync}) {
    std::vector<std::vector<std::int64_t>> const rows{{2, 3}, {3, 1}};
    auto const in_turn = train_convnet(rows, policy, plan_sequential("ddp", 2), 3);
    auto const forwards_first = train_convnet(rows, policy, plan_gpipe({.stages = 1, .micros = 2}), 3);
    for (std::size_t r = 0; r < rows.size(); ++r) {
      EXPECT_EQ(in_turn[r].weights, forwards_first[r].weights);
      EXPECT_EQ(in_turn[r].buffers, forwards_first[r].buffers);
    }
    EXPECT_EQ(in_turn[0].weights, in_turn[1].weights) << "replicas are equal";
    // Each rank moves what rank 0 gave it by its own samples; merged statistics move all alike.
    EXPECT_EQ(in_turn[0].buffers == in_turn[1].buffers, policy == BatchNormPolicy::sync);
  }
}

/// Momentum 0.1, two forwards from 0 in which weights stay: rank 0 alone comes to 0.1 m, then 0.09 m + 0.1 n for means m and n of its
/// micro-batches. Rank 1 without samples in the second holds what it was given: rank 0's 0.1 m, not its own.
TEST(BatchNormCases, case_30_each_forward_begins_with_the_buffers_of_rank_0) {
  Schedule const plan = plan_sequential("ddp", 2);
  auto const ranks = train_convnet({{3, 2}, {2, 0}}, BatchNormPolicy::per_micro, plan, 1);
  auto const first_alone = train_convnet({{3, 0}}, BatchNormPolicy::per_micro, plan, 1);
  auto const alone = train_convnet({{3, 2}}, BatchNormPolicy::per_micro, plan, 1);
  EXPECT_EQ(ranks[1].buffers, first_alone[0].buffers);
  EXPECT_EQ(ranks[0].buffers, alone[0].buffers);
  EXPECT_NE(ranks[0].buffers, ranks[1].buffers);
}

/// No samples on rank 0 and two on rank 1 are what one on each is.
TEST(BatchNormCases, case_40_an_empty_piece_joins_with_count_0) {
  Schedule const plan = plan_sequential("ddp", 1);
  auto const even = train_convnet({{1}, {1}}, BatchNormPolicy::sync, plan, 3);
  for (auto const& rows : {std::vector<std::vector<std::int64_t>>{{0}, {2}}, {{2}, {0}}, {{0}, {1}, {0}, {1}}}) {
    auto const ragged = train_convnet(rows, BatchNormPolicy::sync, plan, 3);
    for (Outcome const& rank : ragged) {
      expect_near(rank.weights, even[0].weights);
      expect_near(rank.buffers, even[0].buffers);
    }
  }
}

TEST(BatchNormCases, case_40_a_micro_batch_that_is_empty_everywhere_changes_no_statistics) {
  for (auto const policy : {BatchNormPolicy::per_micro, BatchNormPolicy::deferred, BatchNormPolicy::sync}) {
    auto const with_empty = train_convnet({{2, 0}, {3, 0}}, policy, plan_sequential("ddp", 2), 2);
    auto const without = train_convnet({{2}, {3}}, policy, plan_sequential("ddp", 1), 2);
    for (double value : with_empty[0].weights) EXPECT_TRUE(std::isfinite(value));
    EXPECT_EQ(with_empty[0].weights, without[0].weights);
    EXPECT_EQ(with_empty[0].buffers, without[0].buffers);
  }
}

}  // namespace
}  // namespace shardmark::testing
