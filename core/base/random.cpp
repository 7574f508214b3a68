#include "base/random.hpp"

#include <Random123/philox.h>

#include <cmath>
#include <numbers>

#include "base/error.hpp"
#include "base/philox_counter.hpp"

namespace shardmark {
namespace {

/// The top 53 of 64 random bits, as an integer below 2^53.
double top53(std::uint32_t high, std::uint32_t low) { return double((std::uint64_t{high} << 32 | low) >> 11); }

}  // namespace

std::array<std::uint32_t, 4> Randoms::block(std::uint64_t index, std::uint32_t lane) const {
  // Key: the seed. Counter: index (64 bits) and stream folded with purpose and lane (64 bits).
  std::uint64_t const mixed = philox_stream(purpose_, stream_, lane);
  r123::Philox4x32::ctr_type const counter{
      {std::uint32_t(index), std::uint32_t(index >> 32), std::uint32_t(mixed), std::uint32_t(mixed >> 32)}};
  r123::Philox4x32::key_type const key{{std::uint32_t(seed_), std::uint32_t(seed_ >> 32)}};
  auto const r = r123::Philox4x32{}(counter, key);
  return {r[0], r[1], r[2], r[3]};
}

double Randoms::uniform(std::uint64_t index) const {
  auto const b = block(index);
  return top53(b[0], b[1]) * 0x1p-53;
}

double Randoms::normal(std::uint64_t index) const {
  auto const b = block(index);
  double const u = (top53(b[0], b[1]) + 1) * 0x1p-53;  // (0, 1]
  double const v = top53(b[2], b[3]) * 0x1p-53;
  return std::sqrt(-2 * std::log(u)) * std::cos(2 * std::numbers::pi * v);
}

std::uint64_t Randoms::below(std::uint64_t n, std::uint64_t index) const {
  expect(n > 0, "an empty range has no member");
  // Rejection keeps it unbiased: drop the incomplete last interval of 2^64.
  std::uint64_t const limit = ~0ull - (~0ull % n + 1) % n;
  for (std::uint32_t lane = 0;; ++lane) {
    auto const b = block(index, lane);
    std::uint64_t const x = std::uint64_t{b[0]} << 32 | b[1];
    if (x <= limit) return x % n;
  }
}

}  // namespace shardmark
