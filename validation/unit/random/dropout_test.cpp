// Dropout masks: the keep rate is what was asked for, and masks of different elements, layers, samples, updates and seeds have nothing to
// do with each other. Each check is shown to fail on a mask with that fault. The same mask on every backend: unit/cpu/dropout_test.cpp.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "backend/dropout_key.hpp"
#include "checks.hpp"

namespace shardmark::testing {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::StartsWith;

struct Key {
  std::uint64_t seed = 1, layer = 0;
  std::int64_t update = 0, sample = 0;
};
/// The first `elements` of a mask, 1 where kept.
using Mask = std::function<std::vector<double>(Key const&, double p, std::int64_t elements)>;

std::vector<double> real_mask(Key const& key, double p, std::int64_t elements) {
  DropoutMask mask(Dropout{.x = {}, .y = {}, .samples = {}, .p = p, .seed = key.seed, .layer = key.layer}, key.update, key.sample);
  std::vector<double> kept;
  for (std::int64_t e = 0; e < elements; ++e) kept.push_back(mask.keep(e) ? 1 : 0);
  return kept;
}

constexpr std::int64_t elements = 1 << 16;

void check_rates(Mask const& mask, double p, Faults& faults) {
  faults.check("rate", mean_z(mask({}, p, elements), 1 - p, std::sqrt(p * (1 - p))));
  // Over short masks of many samples: their rates must differ as much as chance makes them.
  std::vector<double> kept;
  for (std::int64_t sample = 0; sample < 2000; ++sample) {
    double sum = 0;
    for (double k : mask({.sample = sample}, p, 57)) sum += k;
    kept.push_back(sum);
  }
  double const spread = std::sqrt(57 * p * (1 - p));
  faults.check("mean over samples", mean_z(kept, 57 * (1 - p), spread));
  faults.check("spread over samples", variance_z(kept, 57 * (1 - p), spread, 3 + (1 - 6 * p * (1 - p)) / (spread * spread)));
}

void check_elements(Mask const& mask, double p, Faults& faults) {
  std::vector<double> const kept = mask({}, p, elements);
  for (std::size_t lag : {1u, 2u, 3u, 4u, 5u, 8u, 16u, 64u, 1024u}) faults.check(fmt::format("elements {} apart", lag), lag_z(kept, lag));
  if (p != 0.5) return;
  std::vector<std::int64_t> patterns(256);
  for (std::size_t e = 0; e < kept.size(); e += 8) {
    std::size_t pattern = 0;
    for (std::size_t bit = 0; bit < 8; ++bit) pattern = 2 * pattern + std::size_t(kept[e + bit]);
    ++patterns[pattern];
  }
  faults.check("patterns of eight", equal_cells_z(patterns));
}

void check_keys(Mask const& mask, double p, Faults& faults) {
  auto const apart = [&](char const* what, Key const& a, Key const& b) {
    faults.check(what, correlation_z(mask(a, p, elements), mask(b, p, elements)));
  };
  for (std::int64_t other : {1, 2, 256, 1 << 20}) {
    apart("seeds", {.seed = 0}, {.seed = std::uint64_t(other)});
    apart("layers", {.layer = 0}, {.layer = std::uint64_t(other)});
    apart("updates", {.update = 0}, {.update = other});
    apart("samples", {.sample = 0}, {.sample = other});
  }
  // Keys that a sum or an exclusive or of the parts would make equal.
  apart("layer and update", {.layer = 1, .update = 2}, {.layer = 2, .update = 1});
  apart("update and sample", {.update = 1, .sample = 2}, {.update = 2, .sample = 1});
  apart("seed and sample", {.seed = 1, .sample = 2}, {.seed = 2, .sample = 1});
}

std::vector<std::string> faults_of(Mask const& mask) {
  Faults faults;
  for (double p : {0.1, 0.5, 0.9}) {
    check_rates(mask, p, faults);
    check_elements(mask, p, faults);
    check_keys(mask, p, faults);
  }
  return faults.all();
}

TEST(DropoutMasks, AreIndependentWithTheRateAskedFor) { EXPECT_THAT(faults_of(real_mask), IsEmpty()); }

TEST(DropoutMasks, NothingAndAlmostEverything) {
  EXPECT_EQ(real_mask({}, 0, 57), std::vector<double>(57, 1));
  double const almost = 1 - 0x1p-53;  // p 2^32 rounds up to 2^32: no word is that large
  EXPECT_EQ(real_mask({}, almost, 57), std::vector<double>(57, 0));
}

TEST(DropoutMasks, FaultyOnesAreFound) {
  auto const with_key = [](auto&& change) {
    return [change](Key key, double p, std::int64_t n) {
      change(key);
      return real_mask(key, p, n);
    };
  };
  EXPECT_THAT(faults_of(with_key([](Key& k) { k.seed = 1; })), Contains(StartsWith("seeds")));
  EXPECT_THAT(faults_of(with_key([](Key& k) { k.layer = 0; })), Contains(StartsWith("layers")));
  EXPECT_THAT(faults_of(with_key([](Key& k) { k.update = 0; })), Contains(StartsWith("updates")));
  EXPECT_THAT(faults_of(with_key([](Key& k) { k.sample = 0; })), Contains(StartsWith("samples")));
  EXPECT_THAT(faults_of(with_key([](Key& k) { k = {.layer = k.layer + std::uint64_t(k.update), .sample = k.sample}; })),
              Contains(StartsWith("layer and update")));
  EXPECT_THAT(faults_of(with_key([](Key& k) { k = {.layer = k.layer, .sample = k.update ^ k.sample}; })),
              Contains(StartsWith("update and sample")));
  // 16-bit sample ids.
  EXPECT_THAT(faults_of(with_key([](Key& k) { k.sample &= 0xffff; })), Contains(StartsWith("samples")));

  EXPECT_THAT(faults_of([](Key const& k, double p, std::int64_t n) { return real_mask(k, 1.03 * p, n); }), Contains(StartsWith("rate")));
  // One word for two neighbours.
  EXPECT_THAT(faults_of([](Key const& k, double p, std::int64_t n) {
                std::vector<double> mask = real_mask(k, p, n);
                for (std::size_t e = 1; e < mask.size(); e += 2) mask[e] = mask[e - 1];
                return mask;
              }),
              Contains(StartsWith("elements 1 apart")));
  // Every fourth element is the others' parity: pairs are independent, patterns aren't.
  EXPECT_THAT(faults_of([](Key const& k, double p, std::int64_t n) {
                std::vector<double> mask = real_mask(k, p, n);
                if (p == 0.5)
                  for (std::size_t e = 3; e < mask.size(); e += 4) mask[e] = std::fmod(mask[e - 1] + mask[e - 2] + mask[e - 3], 2);
                return mask;
              }),
              Contains(StartsWith("patterns")));
  // Exactly the expected number in each sample.
  EXPECT_THAT(faults_of([](Key const&, double p, std::int64_t n) {
                std::vector<double> mask;
                for (std::int64_t e = 0; e < n; ++e) mask.push_back(e % 10 < std::lround(10 * p) ? 0 : 1);
                return mask;
              }),
              Contains(StartsWith("spread over samples")));
}

}  // namespace
}  // namespace shardmark::testing
