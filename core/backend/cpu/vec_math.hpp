#pragma once
// exp and the logistic function on vectors, for both types and all widths.

#include <cstddef>
#include <iterator>

#include "backend/cpu/vec.hpp"

namespace shardmark::cpu {
namespace {

template <class T>
struct ExpConstants;

// ln 2 in two parts (Cody and Waite 1980): the products of the first with every exponent are exact.
// The polynomial is Taylor's on |r| <= ln 2 / 2, to the degree where its remainder is below a tenth of a unit in the last place.
template <>
struct ExpConstants<float> {
  static constexpr float lowest = -104, highest = 89, round = 0x1.8p23f, saturated = 87;
  static constexpr float log2_e = 1.44269504f, ln2_high = 0.693359375f, ln2_low = -2.12194440e-4f;
  static constexpr float taylor[] = {1.f / 5040, 1.f / 720, 1.f / 120, 1.f / 24, 1.f / 6, 1.f / 2};
};
template <>
struct ExpConstants<double> {
  static constexpr double lowest = -746, highest = 710, round = 0x1.8p52, saturated = 708;
  static constexpr double log2_e = 1.4426950408889634, ln2_high = 6.93145751953125e-1, ln2_low = 1.42860682030941723212e-6;
  static constexpr double taylor[] = {1. / 6227020800, 1. / 479001600, 1. / 39916800, 1. / 3628800, 1. / 362880, 1. / 40320,
                                      1. / 5040,       1. / 720,       1. / 120,      1. / 24,      1. / 6,      1. / 2};
};

/// e^x = 2^n e^r; subnormal results and overflow to infinity are right, NaN stays.
template <class V>
[[gnu::always_inline]] inline V exp(V x) {
  using C = ExpConstants<typename V::Scalar>;
  x = min(V::set(C::highest), max(V::set(C::lowest), x));
  // Adding and subtracting 1.5 x 2^(mantissa bits) rounds to an integer.
  V const n = fma(x, V::set(C::log2_e), V::set(C::round)) - V::set(C::round);
  V r = fma(n, V::set(-C::ln2_high), x);
  r = fma(n, V::set(-C::ln2_low), r);
  V p = V::set(C::taylor[0]);
  for (std::size_t i = 1; i < std::size(C::taylor); ++i) p = fma(p, r, V::set(C::taylor[i]));
  return scale(V::set(1) + fma(r * r, p, r), n);
}

/// The tanh form of GELU through the logistic function: (1 + tanh u) / 2 = 1 / (1 + e^-2u), without cancellation for u < 0.
/// 2u = x (a + b x^2), a = 2 sqrt(2 / pi), b = 0.044715 a.
template <class V>
struct GeluParts {
  V logistic;  // s
  V rest;      // 1 - s, to full relative accuracy
  V square;
};
inline constexpr double gelu_a = 1.5957691216057307117597842397375, gelu_b = 0.044715 * gelu_a;

template <class V>
[[gnu::always_inline]] inline GeluParts<V> gelu_parts(V x) {
  using T = typename V::Scalar;
  V const one = V::set(1), square = x * x;
  V const exponent = V::set(0) - x * fma(V::set(T(gelu_b)), square, V::set(T(gelu_a)));
  // Saturated so that e^-2u s stays finite where s is almost 0.
  V const e = exp(min(V::set(ExpConstants<T>::saturated), exponent));
  V const s = one / (one + e);
  return {s, e * s, square};
}
template <class V>
[[gnu::always_inline]] inline V gelu(V x) {
  return x * gelu_parts(x).logistic;
}
/// gelu'(x) = s + x s (1 - s) (a + 3 b x^2).
template <class V>
[[gnu::always_inline]] inline V gelu_slope(V x) {
  using T = typename V::Scalar;
  GeluParts<V> const g = gelu_parts(x);
  V const slope = fma(V::set(T(3 * gelu_b)), g.square, V::set(T(gelu_a)));
  return fma(x * slope, g.logistic * g.rest, g.logistic);
}

}  // namespace
}  // namespace shardmark::cpu
