#pragma once
// Vectors of one element, in plain C++: the fallback for every processor, and the easiest to check.

#include <bit>
#include <cmath>
#include <concepts>

#include "backend/cpu/vec.hpp"

namespace shardmark::cpu {
namespace {

template <class T, class Bits, int mantissa_bits, int bias>
struct One {
  using Scalar = T;
  static constexpr int lanes = 1;
  static constexpr int tile_rows = 4;
  T v;

  static One set(T x) { return {x}; }
  static One load(T const* p, All = {}) { return {*p}; }
  static One load(T const* p, Some part) { return {part.n > 0 ? *p : T(0)}; }
  static One load(bfloat16 const* p, All = {}) { return {T(*p)}; }
  static One load(bfloat16 const* p, Some part) { return {part.n > 0 ? T(*p) : T(0)}; }
  void store(bfloat16* p, All = {}) const requires std::same_as<T, float> { *p = bfloat16(v); }
  void store(bfloat16* p, Some part) const requires std::same_as<T, float> {
    if (part.n > 0) *p = bfloat16(v);
  }
  template <class From>
  static One widen(From const* p, All = {}) {
    return {T(*p)};
  }
  template <class From>
  static One widen(From const* p, Some part) {
    return {part.n > 0 ? T(*p) : T(0)};
  }
  void store(T* p, All = {}) const { *p = v; }
  void store(T* p, Some part) const {
    if (part.n > 0) *p = v;
  }
  static One merge(All, One a, One) { return a; }
  static One merge(Some part, One a, One b) { return part.n > 0 ? a : b; }
  friend One operator+(One a, One b) { return {a.v + b.v}; }
  friend One operator-(One a, One b) { return {a.v - b.v}; }
  friend One operator*(One a, One b) { return {a.v * b.v}; }
  friend One operator/(One a, One b) { return {a.v / b.v}; }
  friend bool operator>(One a, One b) { return a.v > b.v; }
  friend One fma(One a, One b, One c) { return {a.v * b.v + c.v}; }
  friend One max(One a, One b) { return {a.v > b.v ? a.v : b.v}; }
  friend One min(One a, One b) { return {a.v < b.v ? a.v : b.v}; }
  friend One sqrt(One a) { return {std::sqrt(a.v)}; }
  friend One select(bool mask, One a, One b) { return mask ? a : b; }
  /// In two steps, since 2^n alone may leave the range of normal numbers.
  friend One scale(One x, One n) {
    T const half = std::floor(n.v / 2);
    return {x.v * power(half) * power(n.v - half)};
  }
  T sum() const { return v; }
  T largest() const { return v; }
  static void transpose(One*) {}

 private:
  static T power(T n) { return std::bit_cast<T>(Bits(Bits(n) + bias) << mantissa_bits); }
};

using F32 = One<float, std::int32_t, 23, 127>;
using F64 = One<double, std::int64_t, 52, 1023>;

struct Words {
  static constexpr int lanes = 1;
  std::uint64_t v;

  static Words set(std::uint64_t x) { return {x}; }
  static Words count() { return {0}; }
  void store(std::uint64_t* p) const { *p = v; }
  friend Words operator+(Words a, Words b) { return {a.v + b.v}; }
  friend Words operator^(Words a, Words b) { return {a.v ^ b.v}; }
  friend Words product(Words a, Words b) { return {(a.v & 0xffffffff) * (b.v & 0xffffffff)}; }
  friend Words high(Words a) { return {a.v >> 32}; }
  friend Words join(Words low, Words upper) { return {(low.v & 0xffffffff) | upper.v << 32}; }
};

}  // namespace
}  // namespace shardmark::cpu
