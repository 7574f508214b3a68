// Shuffles: each epoch is a permutation, all of them equally likely, and epochs and seeds have nothing to do with each other. Each check is
// shown to fail on an order with that fault.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "base/random.hpp"
#include "checks.hpp"
#include "data/dataset.hpp"

namespace shardmark::testing {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::StartsWith;

/// The order of n samples in one epoch.
using Order = std::function<std::vector<std::int64_t>(std::int64_t n, std::uint64_t seed, std::int64_t epoch)>;

std::vector<std::int64_t> ascending(std::int64_t n) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(n));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

std::vector<std::int64_t> real_order(std::int64_t n, std::uint64_t seed, std::int64_t epoch) {
  std::vector<std::int64_t> order = ascending(n);
  for (std::int64_t& sample : order) sample = permuted(sample, n, seed, epoch);
  return order;
}

void check_permutations(Order const& order, Faults& faults) {
  for (std::int64_t n : {1, 2, 3, 7, 57, 100, 1025})
    for (std::uint64_t seed : {1u, 2u})
      for (std::int64_t epoch : {0, 1, 57}) {
        std::vector<std::int64_t> all = order(n, seed, epoch);
        std::sort(all.begin(), all.end());
        if (all != ascending(n)) faults.found(fmt::format("permutation of {}", n));
      }
}

/// How often each sample comes at each place.
void check_places(Order const& order, Faults& faults) {
  constexpr std::int64_t n = 19, epochs = 10000;
  std::vector<std::vector<std::int64_t>> counts(n, std::vector<std::int64_t>(n));
  for (std::int64_t epoch = 0; epoch < epochs; ++epoch) {
    auto const samples = order(n, 1, epoch);
    for (std::size_t place = 0; place < n; ++place) ++counts[place][std::size_t(samples[place])];
  }
  for (auto const& place : counts) faults.check("places", equal_cells_z(place));
}

/// Of few samples every order is equally likely.
void check_orders(Order const& order, Faults& faults) {
  for (std::int64_t n : {3, 4, 5}) {
    std::map<std::vector<std::int64_t>, std::int64_t> seen;
    auto samples = ascending(n);
    do seen[samples] = 0;
    while (std::next_permutation(samples.begin(), samples.end()));
    for (std::int64_t epoch = 0; epoch < 20000; ++epoch) ++seen[order(n, 3, epoch)];
    std::vector<std::int64_t> counts;
    for (auto const& [which, count] : seen) counts.push_back(count);
    faults.check(fmt::format("orders of {}", n), equal_cells_z(counts));
  }
}

std::vector<double> as_numbers(std::vector<std::int64_t> const& order) { return {order.begin(), order.end()}; }

void check_independence(Order const& order, Faults& faults) {
  constexpr std::int64_t n = 997;
  std::vector<double> stays, follows;
  for (std::int64_t epoch = 0; epoch < 300; ++epoch) {
    auto const now = order(n, 1, epoch), next = order(n, 1, epoch + 1), other = order(n, 2, epoch);
    faults.check("epochs", correlation_z(as_numbers(now), as_numbers(next)));
    faults.check("seeds", correlation_z(as_numbers(now), as_numbers(other)));
    faults.check("seed and epoch", correlation_z(as_numbers(other), as_numbers(next)));
    faults.check("neighbours", lag_z(as_numbers(now), 1));
    double same = 0, successors = 0;
    for (std::size_t i = 0; i < n; ++i) {
      same += now[i] == next[i] ? 1 : 0;
      successors += now[(i + 1) % n] == (now[i] + 1) % n ? 1 : 0;
    }
    stays.push_back(same);
    follows.push_back(successors);
  }
  // Both counts are nearly Poisson with mean 1.
  faults.check("samples that stay", mean_z(stays, 1, 1));
  faults.check("samples that follow their predecessor", mean_z(follows, double(n) / double(n - 1), 1));
}

std::vector<std::string> faults_of(Order const& order) {
  Faults faults;
  check_permutations(order, faults);
  check_places(order, faults);
  check_orders(order, faults);
  check_independence(order, faults);
  return faults.all();
}

TEST(Shuffles, ArePermutationsAllEquallyLikely) { EXPECT_THAT(faults_of(real_order), IsEmpty()); }

TEST(Shuffles, FaultyOnesAreFound) {
  // Case 6: every epoch alike.
  EXPECT_THAT(faults_of([](std::int64_t n, std::uint64_t seed, std::int64_t) { return real_order(n, seed, 0); }),
              Contains(StartsWith("epochs")));
  EXPECT_THAT(faults_of([](std::int64_t n, std::uint64_t, std::int64_t epoch) { return real_order(n, 1, epoch); }),
              Contains(StartsWith("seeds")));
  EXPECT_THAT(
      faults_of([](std::int64_t n, std::uint64_t seed, std::int64_t epoch) { return real_order(n, 0, std::int64_t(seed) + epoch); }),
      Contains(StartsWith("seed and epoch")));
  // Another start of the same circle.
  EXPECT_THAT(faults_of([](std::int64_t n, std::uint64_t seed, std::int64_t epoch) {
                auto order = ascending(n);
                std::int64_t const start = permuted(0, n, seed, epoch);
                for (std::int64_t& sample : order) sample = (sample + start) % n;
                return order;
              }),
              Contains(StartsWith("samples that follow")));
  // Swapping each with any, instead of with one that isn't placed yet.
  auto const swapped = [](std::int64_t n, std::uint64_t seed, std::int64_t epoch) {
    auto order = ascending(n);
    Randoms const random(seed, Purpose::shuffle, std::uint64_t(epoch));
    for (std::size_t i = 0; i < order.size(); ++i) std::swap(order[i], order[random.below(std::uint64_t(n), i)]);
    return order;
  };
  EXPECT_THAT(faults_of(swapped), Contains(StartsWith("places")));
  EXPECT_THAT(faults_of(swapped), Contains(StartsWith("orders of 3")));
  // Even permutations only.
  EXPECT_THAT(faults_of([](std::int64_t n, std::uint64_t seed, std::int64_t epoch) {
                auto order = real_order(n, seed, epoch);
                bool even = true;
                for (std::size_t i = 0; i < order.size(); ++i)
                  for (std::size_t j = 0; j < i; ++j) even = even != (order[j] > order[i]);
                if (!even) std::swap(order[0], order[1]);
                return order;
              }),
              Contains(StartsWith("orders of 4")));
  // Drawing with replacement.
  EXPECT_THAT(faults_of([](std::int64_t n, std::uint64_t seed, std::int64_t epoch) {
                auto order = real_order(n, seed, epoch);
                if (n == 57) order[0] = order[56];
                return order;
              }),
              Contains(StartsWith("permutation of 57")));
}

}  // namespace
}  // namespace shardmark::testing
