// exp, on which softmax, the loss and GELU rest (GELU's tanh is written through the logistic function, so there is no tanh), is within 2
// units in the last place of the exact value on every instruction set: for every 257th float by default, for all 2^32 under label slow.

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdio>
#include <limits>
#include <vector>

#include "backend/cpu/kernels.hpp"
#include "base/random.hpp"
#include "validation/unit/cpu/exp.hpp"

namespace shardmark::testing {
namespace {

constexpr double allowed_ulps = 2;

std::vector<ExpOn> every_set() {
  std::vector<ExpOn> sets{exp_on_scalar()};
#if defined(__x86_64__)
  if (cpu::has_avx2()) sets.push_back(exp_on_avx2());
  if (cpu::has_avx512()) sets.push_back(exp_on_avx512());
#endif
  return sets;
}

/// e^x to more digits than a float has; the long way only where a float's result isn't plain.
double exact(float x) {
  if (std::abs(x) < 0x1p-26f) return 1 + double(x);
  if (x > 89.5f) return std::numeric_limits<double>::infinity();
  if (x < -105) return 0;
  return double(std::exp(static_cast<long double>(x)));
}

/// Distance from the exact result in units of its last place; those of subnormal numbers are all 2^-149. Infinity counts as 2^128.
double ulps(float result, double exact_result) {
  double const limit = 0x1p128;
  if (exact_result >= limit) return std::isinf(result) && result > 0 ? 0 : std::numeric_limits<double>::infinity();
  double const got = std::isinf(result) ? std::copysign(limit, double(result)) : double(result);
  double const exponent = std::bit_cast<double>(std::bit_cast<std::uint64_t>(exact_result) & 0x7ff0000000000000ull);
  return std::abs(got - exact_result) / std::max(exponent * 0x1p-23, 0x1p-149);
}

struct Worst {
  double ulps = 0;
  float at = 0;
  /// A NaN is worse than anything.
  void see(double distance, float x) {
    if (!(distance <= ulps)) ulps = std::isnan(distance) ? std::numeric_limits<double>::infinity() : distance, at = x;
  }
};

using OfFloats = void (*)(float const* x, float* y, std::int64_t n);

/// The worst of the floats with bits first, first + step, ... for each function.
std::vector<Worst> worst_of(std::vector<OfFloats> const& functions, std::uint64_t first, std::uint64_t step) {
  constexpr std::uint64_t all = std::uint64_t{1} << 32;
  constexpr std::size_t at_once = 1 << 12;
  std::vector<Worst> out(functions.size());
  std::vector<float> x(at_once), y(at_once);
  std::vector<double> want(at_once);
  for (std::uint64_t bits = first; bits < all;) {
    std::size_t n = 0;
    for (; n < at_once && bits < all; ++n, bits += step) x[n] = std::bit_cast<float>(std::uint32_t(bits));
    for (std::size_t i = 0; i < n; ++i) want[i] = exact(x[i]);
    for (std::size_t f = 0; f < functions.size(); ++f) {
      functions[f](x.data(), y.data(), std::int64_t(n));
      for (std::size_t i = 0; i < n; ++i) {
        if (std::isnan(x[i]))
          out[f].see(std::isnan(y[i]) ? 0 : std::numeric_limits<double>::infinity(), x[i]);
        else
          out[f].see(ulps(y[i], want[i]), x[i]);
      }
    }
  }
  return out;
}

void expect_accurate(std::uint64_t step) {
  std::vector<OfFloats> functions;
  for (ExpOn const& on : every_set()) functions.push_back(on.of_floats);
  auto const worst = worst_of(functions, 0, step);
  for (std::size_t f = 0; f < worst.size(); ++f) {
    EXPECT_LE(worst[f].ulps, allowed_ulps) << every_set()[f].set << ": exp(" << worst[f].at << ")";
    std::printf("%s: at most %.3f units in the last place, at %a\n", every_set()[f].set, worst[f].ulps, double(worst[f].at));
  }
}

TEST(Exp, IsAccurateForEvery257thFloat) { expect_accurate(257); }

TEST(EveryFloat, ExpIsAccurate) { expect_accurate(1); }

TEST(Exp, EdgesAreExact) {
  constexpr float inf = std::numeric_limits<float>::infinity(), nan = std::numeric_limits<float>::quiet_NaN();
  constexpr float largest = std::numeric_limits<float>::max(), denormal = std::numeric_limits<float>::denorm_min();
  // The last float whose e^x is finite, the first whose isn't; the last whose e^x is above 2^-150, which rounds to a subnormal number.
  float const x[] = {0,   -0.f,          denormal,      -denormal,      inf,    -inf, largest, -largest,
                     nan, 0x1.62e42ep6f, 0x1.62e430p6f, -0x1.9fe368p6f, -104.5f};
  constexpr std::int64_t n = std::size(x);
  for (ExpOn const& on : every_set()) {
    float y[n];
    on.of_floats(x, y, n);
    for (int i = 0; i < 4; ++i) EXPECT_EQ(y[i], 1) << on.set << " " << x[i];
    EXPECT_EQ(y[4], inf) << on.set;
    EXPECT_EQ(y[5], 0) << on.set;
    EXPECT_EQ(y[6], inf) << on.set;
    EXPECT_EQ(y[7], 0) << on.set;
    EXPECT_TRUE(std::isnan(y[8])) << on.set;
    EXPECT_TRUE(std::isfinite(y[9])) << on.set;
    EXPECT_EQ(y[10], inf) << on.set;
    EXPECT_EQ(y[11], denormal) << on.set;
    EXPECT_EQ(y[12], 0) << on.set;
  }
}

TEST(Exp, OfDoublesIsAccurate) {
  Randoms const random(1, Purpose::synthetic_data, 0);
  std::vector<double> x;
  for (std::uint64_t i = 0; i < 100003; ++i) {
    x.push_back(-745 + 1454.5 * random.uniform(i));
    x.push_back(2 * random.uniform(i + (1 << 20)) - 1);
    x.push_back(std::ldexp(random.uniform(i + (1 << 21)) - 0.5, -int(i % 60)));
  }
  std::vector<double> y(x.size());
  for (ExpOn const& on : every_set()) {
    on.of_doubles(x.data(), y.data(), std::int64_t(x.size()));
    for (std::size_t i = 0; i < x.size(); ++i) {
      long double const want = std::exp(static_cast<long double>(x[i]));
      long double const last_place = std::max(std::ldexp(1.0L, std::ilogb(want) - 52), 0x1p-1074L);
      ASSERT_LE(double(std::abs(y[i] - want) / last_place), allowed_ulps) << on.set << ": exp(" << x[i] << ")";
    }
  }
}

// What must not pass.
void exp_of_fewer_terms(float const* x, float* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = std::exp(x[i]) * (1 + 0x1.8p-22f);
}
void exp_without_subnormals(float const* x, float* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = x[i] < -87.3366f ? 0 : std::exp(x[i]);
}
void exp_that_overflows_early(float const* x, float* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = x[i] > 88 ? std::numeric_limits<float>::infinity() : std::exp(x[i]);
}
void exp_that_loses_nan(float const* x, float* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = std::isnan(x[i]) ? 1 : std::exp(x[i]);
}
void exp_that_never_overflows(float const* x, float* y, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) y[i] = std::min(std::numeric_limits<float>::max(), std::exp(x[i]));
}

TEST(Exp, FaultyOnesAreFound) {
  auto const worst = worst_of(
      {exp_of_fewer_terms, exp_without_subnormals, exp_that_overflows_early, exp_that_loses_nan, exp_that_never_overflows}, 0, 257);
  for (Worst const& w : worst) EXPECT_GT(w.ulps, allowed_ulps);
}

}  // namespace
}  // namespace shardmark::testing
