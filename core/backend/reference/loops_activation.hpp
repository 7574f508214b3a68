#pragma once
// Elementwise functions and dropout.

#include <cmath>
#include <numbers>

#include "backend/dropout_key.hpp"
#include "backend/reference/rows.hpp"

namespace shardmark::reference {

/// The argument of tanh in the tanh form of GELU, and its derivative.
template <class A>
struct GeluInner {
  static constexpr A slope = A(std::numbers::sqrt2 * std::numbers::inv_sqrtpi);  // sqrt(2/pi)
  static constexpr A cubic = A(0.044715);
  static A value(A x) { return slope * (x + cubic * x * x * x); }
  static A derivative(A x) { return slope * (1 + 3 * cubic * x * x); }
};

template <class A>
A gelu(A x) {
  return x / 2 * (1 + std::tanh(GeluInner<A>::value(x)));
}

template <class A>
A gelu_derivative(A x) {
  A const t = std::tanh(GeluInner<A>::value(x));
  return (1 + t) / 2 + x / 2 * (1 - t * t) * GeluInner<A>::derivative(x);
}

template <class T>
void gelu(Gelu const& o) {
  using A = Accumulator<T>;
  std::int64_t const n = columns_of(o.x);
  each_row<T>(
      [n](T const* x, T* y) {
        for (std::int64_t j = 0; j < n; ++j) y[j] = T(gelu(A(x[j])));
      },
      o.x, o.y);
}

template <class T>
void gelu_input(GeluInput const& o) {
  using A = Accumulator<T>;
  std::int64_t const n = columns_of(o.x);
  each_row<T>(
      [n](T const* x, T const* dy, T* dx) {
        for (std::int64_t j = 0; j < n; ++j) dx[j] = T(A(dy[j]) * gelu_derivative(A(x[j])));
      },
      o.x, o.dy, o.dx);
}

template <class T>
void relu(Relu const& o) {
  std::int64_t const n = columns_of(o.x);
  each_row<T>(
      [n](T const* x, T* y) {
        // A NaN must come through: it is neither below nor equal to zero.
        for (std::int64_t j = 0; j < n; ++j) y[j] = x[j] <= T(0) ? T(0) : x[j];
      },
      o.x, o.y);
}

template <class T>
void relu_input(ReluInput const& o) {
  std::int64_t const n = columns_of(o.y);
  each_row<T>(
      [n](T const* y, T const* dy, T* dx) {
        for (std::int64_t j = 0; j < n; ++j) dx[j] = y[j] > T(0) ? dy[j] : T(0);
      },
      o.y, o.dy, o.dx);
}

template <class T>
void dropout(Dropout const& o) {
  using A = Accumulator<T>;
  A const scale = A(1 / (1 - o.p));
  std::int64_t const samples = o.x.shape[0], columns = columns_of(o.x);
  std::int64_t const lines = samples == 0 ? 0 : rows_of(o.x) / samples;
  for (std::int64_t s = 0; s < samples; ++s) {
    std::int64_t const* const key = o.samples.as<std::int64_t>() + 2 * s;
    DropoutMask mask(o, key[0], key[1]);
    for (std::int64_t line = 0; line < lines; ++line) {
      T const* const x = row<T>(o.x, s * lines + line);
      T* const y = row<T>(o.y, s * lines + line);
      for (std::int64_t j = 0; j < columns; ++j) y[j] = mask.keep(dropout_element(o, line, j, columns)) ? T(A(x[j]) * scale) : T(0);
    }
  }
}

}  // namespace shardmark::reference
