#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "base/error.hpp"
#include "data/dataset.hpp"

namespace shardmark {
namespace {

std::vector<std::int64_t> order_of_epoch(Sampler const& sampler, std::int64_t epoch) {
  std::vector<std::int64_t> order, room(std::size_t(sampler.global_batch()));
  for (std::int64_t u = 0; u < sampler.updates_per_epoch(); ++u) {
    auto const used = sampler.samples_of(epoch * sampler.updates_per_epoch() + u, room);
    order.insert(order.end(), used.begin(), used.end());
  }
  return order;
}

std::vector<std::int64_t> ascending(std::int64_t n) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(n));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

TEST(Pieces, DifferByAtMostOneLargerFirst) {
  std::vector<std::int64_t> sizes;
  for (int i = 0; i < 4; ++i) sizes.push_back(piece_of(10, 4, i).size());
  EXPECT_EQ(sizes, (std::vector<std::int64_t>{3, 3, 2, 2}));
  EXPECT_THROW(piece_of(10, 4, 4), Error);
}

TEST(Pieces, CoverEverythingOnceInOrder) {
  for (std::int64_t total : {0, 1, 2, 3, 7, 10, 64, 1000}) {
    for (int n : {1, 2, 3, 4, 7, 13}) {
      std::int64_t at = 0;
      for (int i = 0; i < n; ++i) {
        Range const piece = piece_of(total, n, i);
        EXPECT_EQ(piece.begin, at);
        at = piece.end;
      }
      EXPECT_EQ(at, total);
    }
  }
}

TEST(Permuted, IsABijectionForEverySize) {
  for (std::int64_t n = 1; n <= 300; ++n) {
    std::set<std::int64_t> seen;
    for (std::int64_t i = 0; i < n; ++i) seen.insert(permuted(i, n, 5, 2));
    EXPECT_EQ(std::int64_t(seen.size()), n);
    EXPECT_EQ(*seen.begin(), 0);
    EXPECT_EQ(*seen.rbegin(), n - 1);
  }
}

TEST(Permuted, ReachesFarAboveThirtyTwoBits) {
  std::int64_t const n = (std::int64_t{1} << 40) + 3;
  std::set<std::int64_t> seen;
  for (std::int64_t i = n - 1000; i < n; ++i) {
    std::int64_t const p = permuted(i, n, 5, 2);
    EXPECT_TRUE(p >= 0 && p < n);
    seen.insert(p);
  }
  EXPECT_EQ(seen.size(), 1000u);
}

// A shuffle must not leave structure behind: displacement and lag-1 correlation of a random permutation are those of
// uniform numbers. n = 4096, so the correlation's standard deviation is 1/64.
TEST(Permuted, LooksRandom) {
  std::int64_t const n = 4096;
  double const mean = double(n - 1) / 2, variance = double(n * n - 1) / 12;
  for (std::uint64_t seed : {1, 2, 3}) {
    double against_index = 0, against_next = 0;
    for (std::int64_t i = 0; i < n; ++i) {
      double const x = double(permuted(i, n, seed, 0)) - mean;
      against_index += x * (double(i) - mean);
      against_next += x * (double(permuted((i + 1) % n, n, seed, 0)) - mean);
    }
    EXPECT_LT(std::abs(against_index / double(n) / variance), 5.0 / 64);
    EXPECT_LT(std::abs(against_next / double(n) / variance), 5.0 / 64);
  }
}

TEST(Sampler, case_06_EpochsDifferAndEachCoversTheDataOnce) {
  Sampler const sampler(101, 8, 1234);
  auto const first = order_of_epoch(sampler, 0), second = order_of_epoch(sampler, 1);
  EXPECT_NE(first, second);
  for (auto order : {first, second}) {
    std::sort(order.begin(), order.end());
    EXPECT_EQ(order, ascending(101));
  }
}

TEST(Sampler, IsAFunctionOfTheSeed) {
  EXPECT_EQ(order_of_epoch(Sampler(50, 7, 9), 3), order_of_epoch(Sampler(50, 7, 9), 3));
  EXPECT_NE(order_of_epoch(Sampler(50, 7, 9), 3), order_of_epoch(Sampler(50, 7, 10), 3));
}

TEST(Sampler, OrderDoesNotDependOnTheBatchSize) { EXPECT_EQ(order_of_epoch(Sampler(50, 7, 9), 1), order_of_epoch(Sampler(50, 8, 9), 1)); }

// Case 3: the tail is an update of its own, neither dropped nor padded nor carried into the next epoch.
TEST(Sampler, case_03_LastUpdateOfAnEpochIsShort) {
  Sampler const sampler(7, 4, 1);
  std::vector<std::int64_t> room(4);
  EXPECT_EQ(sampler.updates_per_epoch(), 2);
  std::vector<std::size_t> sizes;
  for (std::int64_t update = 0; update < 4; ++update) sizes.push_back(sampler.samples_of(update, room).size());
  EXPECT_EQ(sizes, (std::vector<std::size_t>{4, 3, 4, 3}));
}

TEST(Sampler, BatchLargerThanTheDataIsTheWholeData) {
  Sampler const sampler(3, 8, 1);
  std::vector<std::int64_t> room(8);
  auto const used = sampler.samples_of(5, room);
  std::vector<std::int64_t> ids(used.begin(), used.end());
  std::sort(ids.begin(), ids.end());
  EXPECT_EQ(ids, ascending(3));
}

}  // namespace
}  // namespace shardmark
