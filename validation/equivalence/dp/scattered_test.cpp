// Samples that rank 0 reads for all.

#include "run/scattered_batches.hpp"

#include <gtest/gtest.h>

#include <atomic>

#include "validation/equivalence/dp/jobs.hpp"

namespace shardmark::testing {
namespace {

/// Counts who reads: a thread may read for the rank that made the loader, so each rank has a data set of its own.
class Counted final : public Dataset {
 public:
  explicit Counted(std::shared_ptr<Dataset const> of) : of_(std::move(of)) {}
  std::int64_t size() const override { return of_->size(); }
  SampleShape const& shape() const override { return of_->shape(); }
  void read(std::int64_t index, std::span<std::byte> input, std::span<std::byte> target) const override {
    ++reads_;
    of_->read(index, input, target);
  }
  std::int64_t counted(std::int64_t index) const override { return of_->counted(index); }
  DataSource const& source() const override { return of_->source(); }
  std::int64_t reads() const { return reads_; }

 private:
  std::shared_ptr<Dataset const> of_;
  mutable std::atomic<std::int64_t> reads_ = 0;
};

class Reads : public ::testing::TestWithParam<int> {};

TEST_P(Reads, rank_0_reads_for_all_and_others_get_what_they_would_read) {
  int const ranks = GetParam();
  int const micros = ranks < 7 ? 2 : 1;
  Options const options = small_dp(7, micros);
  Job const job = dp_job(options, ranks);
  std::vector<std::int64_t> reads(static_cast<std::size_t>(ranks));
  run_thread_ranks(ranks, [&](Communicator& world) {
    auto const data = std::make_shared<Counted>(job.data);
    Job mine = job;
    mine.data = data;
    struct Kept final : Hook {
      void read(Program&, HostBatch const& batch) override { batches.push_back(batch); }
      std::vector<HostBatch> batches;
    } kept;
    auto ops = make_reference_backend();
    {
      Rig rig(mine, {.ops = *ops, .world = world, .hooks = {&kept}});
      rig.program().advance(4);
      rig.program().drain();
    }
    reads[std::size_t(world.rank())] = data->reads();
    Loader own(*job.data, job.sampler(), job.cut(world.rank()), 0);
    ASSERT_EQ(kept.batches.size(), std::size_t(4 * micros));
    for (HostBatch const& batch : kept.batches) {
      HostBatch const& expected = own.next();
      EXPECT_EQ(batch.update, expected.update);
      EXPECT_EQ(batch.rows, expected.rows);
      EXPECT_EQ(batch.counted, expected.counted);
      EXPECT_EQ(batch.window_counted, expected.window_counted);
      EXPECT_EQ(batch.samples, expected.samples);
      EXPECT_EQ(batch.hash, expected.hash);
      EXPECT_EQ(batch.input, expected.input);
      EXPECT_EQ(batch.target, expected.target);
    }
  });
  EXPECT_GE(reads.front(), 7 + 7 + 4 + 7);  // the third update is short; a loader reads ahead
  for (int r = 1; r < ranks; ++r) EXPECT_EQ(reads[std::size_t(r)], 0) << "rank " << r << " reads by itself";
}

INSTANTIATE_TEST_SUITE_P(Sizes, Reads, ::testing::Values(2, 3, 4, 7));

TEST(ScatterLayout, has_room_for_the_first_piece_and_packs_less) {
  SampleShape shape;
  shape.input_type = DType::f32;
  shape.input = {3};
  shape.target_type = DType::i32;
  ScatterLayout const layout(shape, 10, 3, 2);
  EXPECT_EQ(layout.rows, 2);  // 4 of 10, 2 of 4
  HostBatch batch;
  batch.update = 5;
  batch.rows = 1;
  batch.counted = 1;
  batch.window_counted = 10;
  batch.hash = 77;
  batch.samples = {5, 9};
  batch.input.assign(12, std::byte{3});
  batch.target.assign(4, std::byte{1});
  std::vector<std::byte> room(layout.bytes(), std::byte{0xff});
  layout.pack(batch, room.data() + layout.micro_bytes());
  HostBatch back;
  layout.unpack(room.data() + layout.micro_bytes(), back);
  EXPECT_EQ(back.rows, 1);
  EXPECT_EQ(back.window_counted, 10);
  EXPECT_EQ(back.hash, 77U);
  EXPECT_EQ(back.samples, batch.samples);
  EXPECT_EQ(back.input, batch.input);
  EXPECT_EQ(back.target, batch.target);
  batch.rows = 3;
  EXPECT_THROW(layout.pack(batch, room.data()), Error);
}

}  // namespace
}  // namespace shardmark::testing
