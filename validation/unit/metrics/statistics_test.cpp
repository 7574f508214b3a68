#include "metrics/statistics.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/error.hpp"
#include "base/random.hpp"
#include "metrics/measured.hpp"

namespace shardmark {
namespace {

std::vector<double> counting_up(std::size_t n) {
  std::vector<double> out;
  for (std::size_t i = 1; i <= n; ++i) out.push_back(double(i));
  return out;
}

TEST(Statistics, QuantilesInterpolateLikeNumpy) {
  std::vector<double> const x{3, 1, 4, 1, 5, 9, 2, 6};
  EXPECT_DOUBLE_EQ(median(x), 3.5);
  EXPECT_DOUBLE_EQ(quantile(x, 0), 1);
  EXPECT_DOUBLE_EQ(quantile(x, 1), 9);
  EXPECT_DOUBLE_EQ(quantile(x, 0.95), 7.95);
  EXPECT_DOUBLE_EQ(mean(x), 3.875);
  EXPECT_THROW(median({}), Error);
}

// Table A.1 of Le Boudec, Performance Evaluation of Computer and Communication Systems (2010): ranks of the 95 % interval.
TEST(Statistics, MedianIntervalTakesTheRanksOfTheTable) {
  struct Row {
    std::size_t n;
    double low, high;
  };
  for (Row const& row :
       {Row{6, 1, 6}, {8, 1, 8}, {9, 2, 8}, {10, 2, 9}, {15, 4, 12}, {20, 6, 15}, {30, 10, 21}, {50, 18, 33}, {70, 27, 44}}) {
    auto const interval = median_interval(counting_up(row.n));
    ASSERT_TRUE(interval) << row.n;
    EXPECT_EQ(interval->low, row.low) << row.n;
    EXPECT_EQ(interval->high, row.high) << row.n;
  }
}

TEST(Statistics, case_116_TooFewSamplesHaveNoInterval) {
  for (std::size_t n = 0; n < 6; ++n) EXPECT_FALSE(median_interval(counting_up(n))) << n;
  EXPECT_TRUE(median_interval(counting_up(2), 0.4));
}

TEST(Statistics, MedianIntervalOfManySamplesIsFinite) {
  auto const interval = median_interval(counting_up(20000));
  ASSERT_TRUE(interval);
  EXPECT_NEAR(interval->low, 10000 - 0.98 * std::sqrt(20000), 2);  // the normal approximation in the same table
}

// What the interval promises: it holds the true median in at least 95 % of experiments.
TEST(Statistics, MedianIntervalCoversTheMedian) {
  Randoms const randoms(1, Purpose::order, 7);
  int held = 0;
  int const experiments = 4000;
  for (int e = 0; e < experiments; ++e) {
    std::vector<double> samples;
    for (int i = 0; i < 15; ++i) samples.push_back(std::exp(randoms.normal(std::uint64_t(e * 15 + i))));
    held += median_interval(samples)->holds(1) ? 1 : 0;
  }
  EXPECT_GT(double(held) / experiments, 0.95);
  EXPECT_LT(double(held) / experiments, 0.98);
}

TEST(Statistics, AutocorrelationFindsDriftAndAlternation) {
  auto const drift = lag1_autocorrelation(counting_up(100));
  std::vector<double> alternating;
  for (int i = 0; i < 100; ++i) alternating.push_back(i % 2);
  EXPECT_GT(*drift, 0.9);
  EXPECT_LT(*lag1_autocorrelation(alternating), -0.9);
  EXPECT_FALSE(lag1_autocorrelation(std::vector<double>{1, 2}));
  EXPECT_FALSE(lag1_autocorrelation(std::vector<double>{2, 2, 2, 2}));
  EXPECT_DOUBLE_EQ(*lag1_autocorrelation(std::vector<double>{1, 2, 3}), 0);
}

TEST(Statistics, HalvesRatioLeavesTheMiddleOut) {
  EXPECT_DOUBLE_EQ(*halves_ratio(std::vector<double>{4, 4, 100, 2, 2}), 2);
  EXPECT_FALSE(halves_ratio(std::vector<double>{1}));
}

// Drift that both strategies share cancels in the pairs, where it would drown the difference of the medians.
TEST(Statistics, PairedRatioCancelsWhatRoundsShare) {
  std::vector<double> a, b;
  for (double round = 1; round <= 8; ++round) {
    b.push_back(round);
    a.push_back(1.1 * round);
  }
  auto const ratio = paired_ratio(a, b);
  EXPECT_NEAR(ratio.median, 1.1, 1e-12);
  ASSERT_TRUE(ratio.ci95);
  EXPECT_FALSE(ratio.may_be_equal());
  EXPECT_TRUE(paired_ratio(std::vector<double>(5, 2.0), std::vector<double>(5, 1.0)).may_be_equal()) << "five rounds prove nothing";
  EXPECT_THROW(paired_ratio(a, std::vector<double>{1}), Error);
}

TEST(Statistics, SummaryKeepsOutliers) {
  std::vector<double> samples(9, 0.1);
  samples.push_back(1.1);
  Summary const summary = summarise(samples);
  EXPECT_EQ(summary.n, 10u);
  EXPECT_DOUBLE_EQ(summary.mean, 0.2);
  EXPECT_DOUBLE_EQ(summary.max, 1.1);
  EXPECT_DOUBLE_EQ(summary.median, 0.1);
}

TEST(Measured, IsAValueOrAReason) {
  EXPECT_EQ(*Measured<int>(3), 3);
  EXPECT_EQ(Measured<int>(3).reason(), "");
  EXPECT_EQ(Measured<int>::missing("no counter").reason(), "no counter");
  EXPECT_FALSE(Measured<double>(std::nan("")));
  EXPECT_FALSE(Measured<double>(INFINITY));
  EXPECT_EQ(Measured<double>(-INFINITY).reason(), "the value is not finite");
  EXPECT_FALSE(Measured<double>().reason().empty());
}

}  // namespace
}  // namespace shardmark
