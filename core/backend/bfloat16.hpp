#pragma once
// bfloat16: the upper half of an fp32. Stored only; arithmetic happens in fp32.

#include <bit>
#include <cmath>
#include <cstdint>

#include "tensor/view.hpp"

namespace shardmark {

struct bfloat16 {
  std::uint16_t bits = 0;

  bfloat16() = default;
  /// Rounds to nearest, ties to even; a NaN stays a (quiet) NaN.
  explicit bfloat16(float value) {
    std::uint32_t const word = std::bit_cast<std::uint32_t>(value);
    if (std::isnan(value))
      bits = std::uint16_t(word >> 16 | 0x40);
    else
      bits = std::uint16_t((word + 0x7fff + (word >> 16 & 1)) >> 16);
  }
  operator float() const { return std::bit_cast<float>(std::uint32_t{bits} << 16); }
};

template <>
constexpr DType dtype_of<bfloat16>() {
  return DType::bf16;
}

/// fp64 -> bf16 rounded once. Going through a nearest-even fp32 would round twice; rounding to odd first doesn't (Boldo and
/// Melquiond 2008).
inline bfloat16 round_to_bfloat16(double value) {
  float const near = float(value);
  if (std::isnan(near) || std::isinf(near) || double(near) == value) return bfloat16(near);
  std::uint32_t word = std::bit_cast<std::uint32_t>(near);
  if (std::abs(double(near)) > std::abs(value)) --word;  // toward zero
  return bfloat16(std::bit_cast<float>(word | 1));
}

/// The type in which sums of T are kept.
template <class T>
struct AccumulatorOf {
  using type = T;
};
template <>
struct AccumulatorOf<bfloat16> {
  using type = float;
};
template <class T>
using Accumulator = typename AccumulatorOf<T>::type;

}  // namespace shardmark
