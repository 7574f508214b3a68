#include "optim/lr_schedule.hpp"

#include <gtest/gtest.h>

#include <set>

#include "data/dataset.hpp"

namespace shardmark {
namespace {

TEST(LearningRate, ConstantStays) {
  LearningRate const rate{.base = 0.1};
  EXPECT_EQ(rate.at(0), 0.1);
  EXPECT_EQ(rate.at(1000), 0.1);
}

TEST(LearningRate, LinearFallsByEqualSteps) {
  LearningRate const rate{.base = 1, .shape = RateShape::linear, .updates = 4};
  EXPECT_EQ(rate.at(0), 1);
  EXPECT_EQ(rate.at(1), 0.75);
  EXPECT_EQ(rate.at(3), 0.25);
  EXPECT_EQ(rate.at(9), 0.25) << "later updates keep the last value";
}

TEST(LearningRate, CosineIsHalfWayInTheMiddle) {
  LearningRate const rate{.base = 2, .shape = RateShape::cosine, .updates = 10};
  EXPECT_EQ(rate.at(0), 2);
  EXPECT_NEAR(rate.at(5), 1, 1e-15);
  for (std::int64_t update = 1; update < 10; ++update) EXPECT_LT(rate.at(update), rate.at(update - 1));
  EXPECT_GT(rate.at(9), 0);
}

// Seven micro-batches of one sample, four to an update: the schedule makes two steps, and the tail is the second.
TEST(LearningRate, case_03_OneStepAnUpdateNotAMicroBatch) {
  auto const data = make_synthetic_vectors(1, 7, {3}, 2);
  Sampler const sampler(7, 4, 1);
  LearningRate const rate{.base = 1, .shape = RateShape::linear, .updates = sampler.updates_per_epoch()};
  Loader loader(*data, sampler, {.micros = 4}, 0);
  std::set<double> rates;
  std::int64_t filled = 0;
  for (int micro = 0; micro < 8; ++micro) {
    HostBatch const& batch = loader.next();
    filled += batch.rows > 0 ? 1 : 0;
    rates.insert(rate.at(batch.update));
  }
  EXPECT_EQ(filled, 7);
  EXPECT_EQ(rates, (std::set<double>{0.5, 1}));
}

}  // namespace
}  // namespace shardmark
