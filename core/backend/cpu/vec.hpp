#pragma once
// What the three vector headers have in common. Each of vec_scalar.hpp, vec_avx2.hpp and vec_avx512.hpp defines F32 and F64:
//
//   Scalar, lanes           element type and count; tile_rows: rows of the matmul's micro-kernel
//   load(p, part)           `part` is All{}, or Some{n} for the first n lanes (the others read as 0 and aren't touched in memory)
//   widen(p, part)          load of any floating type as doubles (F64)
//   store(p, part)          F32 loads and stores bf16 too: exact, and rounded to nearest even (a NaN stays one) as in bfloat16.hpp
//   merge(part, a, b)       a in the lanes of `part`, b elsewhere
//   fma(a, b, c), max, min  max and min return the second operand when either is NaN
//   select(a > b, x, y)
//   scale(x, n)             x 2^n for integral n, |n| < 2 x the type's largest exponent
//   sum(), largest()        over the lanes, in one fixed order
//   transpose(rows)         of a lanes x lanes block
//
// and Words, of 64-bit integers:
//
//   set(x), count()         x everywhere; 0, 1, 2, ...
//   product(a, b)           of the low 32 bits of each, all 64 bits of it
//   high(a)                 the upper 32 bits
//   join(low, upper)        the low 32 bits of both, side by side
//
// Tails use the same instructions as whole vectors, so bits don't depend on where a range is cut (validation rule 12).
// Everything lives in an unnamed namespace: code compiled for one instruction set must never be linked in place of another's.

#include <cstdint>

#include "backend/bfloat16.hpp"

namespace shardmark::cpu {
namespace {

struct All {};
struct Some {
  std::int64_t n;
};

/// Calls f(index, All or Some) over [0, n) in steps of one vector.
template <class V, class F>
[[gnu::always_inline]] inline void each_vector(std::int64_t n, F&& f) {
  std::int64_t i = 0;
  for (; i + V::lanes <= n; i += V::lanes) f(i, All{});
  if (i < n) f(i, Some{n - i});
}

/// Sum of f(index, part) over [0, n): four partial sums, taken in turns by the vector's index, then a fixed tree. f must give 0 in
/// lanes past the end.
template <class V, class F>
[[gnu::always_inline]] inline typename V::Scalar sum_vectors(std::int64_t n, F&& f) {
  V s[4] = {V::set(0), V::set(0), V::set(0), V::set(0)};
  std::int64_t i = 0;
  for (; i + 4 * V::lanes <= n; i += 4 * V::lanes)
    for (int j = 0; j < 4; ++j) s[j] = s[j] + f(i + j * V::lanes, All{});
  for (int j = 0; j < 4 && i < n; ++j, i += V::lanes) s[j] = s[j] + f(i, Some{n - i < V::lanes ? n - i : V::lanes});
  return ((s[0] + s[1]) + (s[2] + s[3])).sum();
}

template <class T>
constexpr T smaller(T a, T b) {
  return b < a ? b : a;
}
template <class T>
constexpr T larger(T a, T b) {
  return a < b ? b : a;
}
constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

}  // namespace
}  // namespace shardmark::cpu
