#pragma once
// AVX2 with FMA: 8 floats or 4 doubles. Tails use masked loads and stores.

#include <immintrin.h>

#include <cstddef>

#include "backend/cpu/vec.hpp"

namespace shardmark::cpu {
namespace {

/// `part.n` words of ones, then zeros: a window on ones followed by zeros.
inline __m256i first_words(std::int64_t n) {
  alignas(64) static constexpr std::int32_t ones_then_zeros[16] = {-1, -1, -1, -1, -1, -1, -1, -1};
  return _mm256_loadu_si256(reinterpret_cast<__m256i const*>(ones_then_zeros + 8 - n));
}

/// The first `part.n` of eight halves, zeros behind them: there are no masked loads of 16 bits.
inline __m128i load_halves(bfloat16 const* p, Some part) {
  alignas(16) std::uint16_t halves[8] = {};
  __builtin_memcpy(halves, p, std::size_t(part.n) * sizeof(bfloat16));
  return _mm_load_si128(reinterpret_cast<__m128i const*>(halves));
}

struct F32 {
  using Scalar = float;
  static constexpr int lanes = 8;
  static constexpr int tile_rows = 6;  // 6 x 2 sums, two vectors of b, one broadcast: 15 of 16 registers
  __m256 v;

  static F32 set(float x) { return {_mm256_set1_ps(x)}; }
  static F32 load(float const* p, All = {}) { return {_mm256_loadu_ps(p)}; }
  static F32 load(float const* p, Some part) { return {_mm256_maskload_ps(p, first_words(part.n))}; }
  void store(float* p, All = {}) const { _mm256_storeu_ps(p, v); }
  void store(float* p, Some part) const { _mm256_maskstore_ps(p, first_words(part.n), v); }
  static F32 load(bfloat16 const* p, All = {}) { return from_upper(_mm_loadu_si128(reinterpret_cast<__m128i const*>(p))); }
  static F32 load(bfloat16 const* p, Some part) { return from_upper(load_halves(p, part)); }
  void store(bfloat16* p, All = {}) const { _mm_storeu_si128(reinterpret_cast<__m128i*>(p), rounded_upper()); }
  void store(bfloat16* p, Some part) const {
    alignas(16) std::uint16_t halves[8];
    _mm_store_si128(reinterpret_cast<__m128i*>(halves), rounded_upper());
    __builtin_memcpy(p, halves, std::size_t(part.n) * sizeof(bfloat16));
  }
  static F32 merge(All, F32 a, F32) { return a; }
  static F32 merge(Some part, F32 a, F32 b) { return {_mm256_blendv_ps(b.v, a.v, _mm256_castsi256_ps(first_words(part.n)))}; }
  friend F32 operator+(F32 a, F32 b) { return {_mm256_add_ps(a.v, b.v)}; }
  friend F32 operator-(F32 a, F32 b) { return {_mm256_sub_ps(a.v, b.v)}; }
  friend F32 operator*(F32 a, F32 b) { return {_mm256_mul_ps(a.v, b.v)}; }
  friend F32 operator/(F32 a, F32 b) { return {_mm256_div_ps(a.v, b.v)}; }
  friend F32 operator>(F32 a, F32 b) { return {_mm256_cmp_ps(a.v, b.v, _CMP_GT_OQ)}; }
  friend F32 fma(F32 a, F32 b, F32 c) { return {_mm256_fmadd_ps(a.v, b.v, c.v)}; }
  friend F32 max(F32 a, F32 b) { return {_mm256_max_ps(a.v, b.v)}; }
  friend F32 min(F32 a, F32 b) { return {_mm256_min_ps(a.v, b.v)}; }
  friend F32 sqrt(F32 a) { return {_mm256_sqrt_ps(a.v)}; }
  friend F32 select(F32 m, F32 a, F32 b) { return {_mm256_blendv_ps(b.v, a.v, m.v)}; }
  /// In two steps, since 2^n alone may leave the range of normal numbers.
  friend F32 scale(F32 x, F32 n) {
    F32 const half{_mm256_floor_ps(_mm256_mul_ps(n.v, _mm256_set1_ps(0.5f)))};
    return x * power(half) * power(n - half);
  }
  float sum() const {
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
  }
  float largest() const {
    __m128 s = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    s = _mm_max_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_max_ss(s, _mm_movehdup_ps(s)));
  }
  static void transpose(F32* r) {
    F32 t[8];
    for (int i = 0; i < 8; i += 2) {
      t[i].v = _mm256_unpacklo_ps(r[i].v, r[i + 1].v);
      t[i + 1].v = _mm256_unpackhi_ps(r[i].v, r[i + 1].v);
    }
    for (int i = 0; i < 8; i += 4) {
      r[i].v = _mm256_shuffle_ps(t[i].v, t[i + 2].v, 0x44);
      r[i + 1].v = _mm256_shuffle_ps(t[i].v, t[i + 2].v, 0xee);
      r[i + 2].v = _mm256_shuffle_ps(t[i + 1].v, t[i + 3].v, 0x44);
      r[i + 3].v = _mm256_shuffle_ps(t[i + 1].v, t[i + 3].v, 0xee);
    }
    for (int i = 0; i < 4; ++i) {
      t[i].v = _mm256_permute2f128_ps(r[i].v, r[i + 4].v, 0x20);
      t[i + 4].v = _mm256_permute2f128_ps(r[i].v, r[i + 4].v, 0x31);
    }
    for (int i = 0; i < 8; ++i) r[i] = t[i];
  }

 private:
  static F32 from_upper(__m128i half) { return {_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16))}; }
  __m128i rounded_upper() const {
    __m256i const word = _mm256_castps_si256(v), odd = _mm256_and_si256(_mm256_srli_epi32(word, 16), _mm256_set1_epi32(1));
    __m256i const rounded = _mm256_add_epi32(word, _mm256_add_epi32(odd, _mm256_set1_epi32(0x7fff)));
    __m256i const quiet = _mm256_or_si256(word, _mm256_set1_epi32(0x400000));
    __m256i const nan = _mm256_castps_si256(_mm256_cmp_ps(v, v, _CMP_UNORD_Q));
    __m256i const upper = _mm256_srli_epi32(_mm256_blendv_epi8(rounded, quiet, nan), 16);
    return _mm_packus_epi32(_mm256_castsi256_si128(upper), _mm256_extracti128_si256(upper, 1));
  }
  static F32 power(F32 n) {
    __m256i const biased = _mm256_add_epi32(_mm256_cvtps_epi32(n.v), _mm256_set1_epi32(127));
    return {_mm256_castsi256_ps(_mm256_slli_epi32(biased, 23))};
  }
};

struct F64 {
  using Scalar = double;
  static constexpr int lanes = 4;
  static constexpr int tile_rows = 6;
  __m256d v;

  static F64 set(double x) { return {_mm256_set1_pd(x)}; }
  static F64 load(double const* p, All = {}) { return {_mm256_loadu_pd(p)}; }
  static F64 load(double const* p, Some part) { return {_mm256_maskload_pd(p, first_words(2 * part.n))}; }
  static F64 widen(double const* p, All = {}) { return load(p); }
  static F64 widen(double const* p, Some part) { return load(p, part); }
  static F64 widen(float const* p, All = {}) { return {_mm256_cvtps_pd(_mm_loadu_ps(p))}; }
  static F64 widen(float const* p, Some part) { return {_mm256_cvtps_pd(_mm_maskload_ps(p, _mm256_castsi256_si128(first_words(part.n))))}; }
  static F64 widen(bfloat16 const* p, All = {}) { return from_upper(_mm_loadl_epi64(reinterpret_cast<__m128i const*>(p))); }
  static F64 widen(bfloat16 const* p, Some part) { return from_upper(load_halves(p, part)); }
  void store(double* p, All = {}) const { _mm256_storeu_pd(p, v); }
  void store(double* p, Some part) const { _mm256_maskstore_pd(p, first_words(2 * part.n), v); }
  static F64 merge(All, F64 a, F64) { return a; }
  static F64 merge(Some part, F64 a, F64 b) { return {_mm256_blendv_pd(b.v, a.v, _mm256_castsi256_pd(first_words(2 * part.n)))}; }
  friend F64 operator+(F64 a, F64 b) { return {_mm256_add_pd(a.v, b.v)}; }
  friend F64 operator-(F64 a, F64 b) { return {_mm256_sub_pd(a.v, b.v)}; }
  friend F64 operator*(F64 a, F64 b) { return {_mm256_mul_pd(a.v, b.v)}; }
  friend F64 operator/(F64 a, F64 b) { return {_mm256_div_pd(a.v, b.v)}; }
  friend F64 operator>(F64 a, F64 b) { return {_mm256_cmp_pd(a.v, b.v, _CMP_GT_OQ)}; }
  friend F64 fma(F64 a, F64 b, F64 c) { return {_mm256_fmadd_pd(a.v, b.v, c.v)}; }
  friend F64 max(F64 a, F64 b) { return {_mm256_max_pd(a.v, b.v)}; }
  friend F64 min(F64 a, F64 b) { return {_mm256_min_pd(a.v, b.v)}; }
  friend F64 sqrt(F64 a) { return {_mm256_sqrt_pd(a.v)}; }
  friend F64 select(F64 m, F64 a, F64 b) { return {_mm256_blendv_pd(b.v, a.v, m.v)}; }
  friend F64 scale(F64 x, F64 n) {
    F64 const half{_mm256_floor_pd(_mm256_mul_pd(n.v, _mm256_set1_pd(0.5)))};
    return x * power(half) * power(n - half);
  }
  double sum() const {
    __m128d const s = _mm_add_pd(_mm256_castpd256_pd128(v), _mm256_extractf128_pd(v, 1));
    return _mm_cvtsd_f64(_mm_add_sd(s, _mm_unpackhi_pd(s, s)));
  }
  double largest() const {
    __m128d const s = _mm_max_pd(_mm256_castpd256_pd128(v), _mm256_extractf128_pd(v, 1));
    return _mm_cvtsd_f64(_mm_max_sd(s, _mm_unpackhi_pd(s, s)));
  }
  static void transpose(F64* r) {
    __m256d const a = _mm256_unpacklo_pd(r[0].v, r[1].v), b = _mm256_unpackhi_pd(r[0].v, r[1].v);
    __m256d const c = _mm256_unpacklo_pd(r[2].v, r[3].v), d = _mm256_unpackhi_pd(r[2].v, r[3].v);
    r[0].v = _mm256_permute2f128_pd(a, c, 0x20);
    r[1].v = _mm256_permute2f128_pd(b, d, 0x20);
    r[2].v = _mm256_permute2f128_pd(a, c, 0x31);
    r[3].v = _mm256_permute2f128_pd(b, d, 0x31);
  }

 private:
  /// The lower four of eight halves.
  static F64 from_upper(__m128i halves) { return {_mm256_cvtps_pd(_mm_castsi128_ps(_mm_slli_epi32(_mm_cvtepu16_epi32(halves), 16)))}; }
  static F64 power(F64 n) {
    __m256i const biased = _mm256_add_epi64(_mm256_cvtepi32_epi64(_mm256_cvtpd_epi32(n.v)), _mm256_set1_epi64x(1023));
    return {_mm256_castsi256_pd(_mm256_slli_epi64(biased, 52))};
  }
};

struct Words {
  static constexpr int lanes = 4;
  __m256i v;

  static Words set(std::uint64_t x) { return {_mm256_set1_epi64x(std::int64_t(x))}; }
  static Words count() { return {_mm256_set_epi64x(3, 2, 1, 0)}; }
  void store(std::uint64_t* p) const { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), v); }
  friend Words operator+(Words a, Words b) { return {_mm256_add_epi64(a.v, b.v)}; }
  friend Words operator^(Words a, Words b) { return {_mm256_xor_si256(a.v, b.v)}; }
  friend Words product(Words a, Words b) { return {_mm256_mul_epu32(a.v, b.v)}; }
  friend Words high(Words a) { return {_mm256_srli_epi64(a.v, 32)}; }
  friend Words join(Words low, Words upper) {
    return {_mm256_or_si256(_mm256_and_si256(low.v, _mm256_set1_epi64x(0xffffffff)), _mm256_slli_epi64(upper.v, 32))};
  }
};

}  // namespace
}  // namespace shardmark::cpu
