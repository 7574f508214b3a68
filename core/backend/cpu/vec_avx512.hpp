#pragma once
// AVX-512 (F, DQ, BW, VL): 16 floats or 8 doubles.

#include <immintrin.h>

#include "backend/cpu/vec.hpp"

namespace shardmark::cpu {
namespace {

struct F32 {
  using Scalar = float;
  static constexpr int lanes = 16;
  static constexpr int tile_rows = 14;  // 14 x 2 sums, two vectors of b, one broadcast: 31 of 32 registers
  __m512 v;

  static __mmask16 mask(Some part) { return __mmask16(_bzhi_u32(0xffff, unsigned(part.n))); }
  static F32 set(float x) { return {_mm512_set1_ps(x)}; }
  static F32 load(float const* p, All = {}) { return {_mm512_loadu_ps(p)}; }
  static F32 load(float const* p, Some part) { return {_mm512_maskz_loadu_ps(mask(part), p)}; }
  void store(float* p, All = {}) const { _mm512_storeu_ps(p, v); }
  void store(float* p, Some part) const { _mm512_mask_storeu_ps(p, mask(part), v); }
  static F32 load(bfloat16 const* p, All = {}) { return from_upper(_mm256_loadu_si256(reinterpret_cast<__m256i const*>(p))); }
  static F32 load(bfloat16 const* p, Some part) { return from_upper(_mm256_maskz_loadu_epi16(mask(part), p)); }
  void store(bfloat16* p, All = {}) const { _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), rounded_upper()); }
  void store(bfloat16* p, Some part) const { _mm256_mask_storeu_epi16(p, mask(part), rounded_upper()); }
  static F32 merge(All, F32 a, F32) { return a; }
  static F32 merge(Some part, F32 a, F32 b) { return {_mm512_mask_blend_ps(mask(part), b.v, a.v)}; }
  friend F32 operator+(F32 a, F32 b) { return {_mm512_add_ps(a.v, b.v)}; }
  friend F32 operator-(F32 a, F32 b) { return {_mm512_sub_ps(a.v, b.v)}; }
  friend F32 operator*(F32 a, F32 b) { return {_mm512_mul_ps(a.v, b.v)}; }
  friend F32 operator/(F32 a, F32 b) { return {_mm512_div_ps(a.v, b.v)}; }
  friend __mmask16 operator>(F32 a, F32 b) { return _mm512_cmp_ps_mask(a.v, b.v, _CMP_GT_OQ); }
  friend F32 fma(F32 a, F32 b, F32 c) { return {_mm512_fmadd_ps(a.v, b.v, c.v)}; }
  friend F32 max(F32 a, F32 b) { return {_mm512_max_ps(a.v, b.v)}; }
  friend F32 min(F32 a, F32 b) { return {_mm512_min_ps(a.v, b.v)}; }
  friend F32 sqrt(F32 a) { return {_mm512_sqrt_ps(a.v)}; }
  friend F32 select(__mmask16 m, F32 a, F32 b) { return {_mm512_mask_blend_ps(m, b.v, a.v)}; }
  friend F32 scale(F32 x, F32 n) { return {_mm512_scalef_ps(x.v, n.v)}; }
  float sum() const { return _mm512_reduce_add_ps(v); }
  float largest() const { return _mm512_reduce_max_ps(v); }

  static void transpose(F32* r) {
    F32 t[16];
    for (int i = 0; i < 8; ++i) {
      t[2 * i].v = _mm512_unpacklo_ps(r[2 * i].v, r[2 * i + 1].v);
      t[2 * i + 1].v = _mm512_unpackhi_ps(r[2 * i].v, r[2 * i + 1].v);
    }
    auto pairs = [](F32 a, F32 b, bool high) {
      __m512d const x = _mm512_castps_pd(a.v), y = _mm512_castps_pd(b.v);
      return F32{_mm512_castpd_ps(high ? _mm512_unpackhi_pd(x, y) : _mm512_unpacklo_pd(x, y))};
    };
    for (int i = 0; i < 16; i += 4) {
      r[i] = pairs(t[i], t[i + 2], false);
      r[i + 1] = pairs(t[i], t[i + 2], true);
      r[i + 2] = pairs(t[i + 1], t[i + 3], false);
      r[i + 3] = pairs(t[i + 1], t[i + 3], true);
    }
    for (int i = 0; i < 4; ++i) {
      t[i].v = _mm512_shuffle_f32x4(r[i].v, r[i + 4].v, 0x88);
      t[i + 4].v = _mm512_shuffle_f32x4(r[i].v, r[i + 4].v, 0xdd);
      t[i + 8].v = _mm512_shuffle_f32x4(r[i + 8].v, r[i + 12].v, 0x88);
      t[i + 12].v = _mm512_shuffle_f32x4(r[i + 8].v, r[i + 12].v, 0xdd);
    }
    for (int i = 0; i < 8; ++i) {
      r[i].v = _mm512_shuffle_f32x4(t[i].v, t[i + 8].v, 0x88);
      r[i + 8].v = _mm512_shuffle_f32x4(t[i].v, t[i + 8].v, 0xdd);
    }
  }

 private:
  static F32 from_upper(__m256i half) { return {_mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(half), 16))}; }
  /// Not vcvtneps2bf16, which takes subnormal numbers for zero.
  __m256i rounded_upper() const {
    __m512i const word = _mm512_castps_si512(v), odd = _mm512_and_si512(_mm512_srli_epi32(word, 16), _mm512_set1_epi32(1));
    __m512i const rounded = _mm512_add_epi32(word, _mm512_add_epi32(odd, _mm512_set1_epi32(0x7fff)));
    __m512i const quiet = _mm512_or_si512(word, _mm512_set1_epi32(0x400000));
    __mmask16 const nan = _mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q);
    return _mm512_cvtepi32_epi16(_mm512_srli_epi32(_mm512_mask_mov_epi32(rounded, nan, quiet), 16));
  }
};

struct F64 {
  using Scalar = double;
  static constexpr int lanes = 8;
  static constexpr int tile_rows = 14;
  __m512d v;

  static __mmask8 mask(Some part) { return __mmask8(_bzhi_u32(0xff, unsigned(part.n))); }
  static F64 set(double x) { return {_mm512_set1_pd(x)}; }
  static F64 load(double const* p, All = {}) { return {_mm512_loadu_pd(p)}; }
  static F64 load(double const* p, Some part) { return {_mm512_maskz_loadu_pd(mask(part), p)}; }
  static F64 widen(double const* p, All = {}) { return load(p); }
  static F64 widen(double const* p, Some part) { return load(p, part); }
  static F64 widen(float const* p, All = {}) { return {_mm512_cvtps_pd(_mm256_loadu_ps(p))}; }
  static F64 widen(float const* p, Some part) { return {_mm512_cvtps_pd(_mm256_maskz_loadu_ps(mask(part), p))}; }
  static F64 widen(bfloat16 const* p, All = {}) { return from_upper(_mm_loadu_si128(reinterpret_cast<__m128i const*>(p))); }
  static F64 widen(bfloat16 const* p, Some part) { return from_upper(_mm_maskz_loadu_epi16(mask(part), p)); }
  void store(double* p, All = {}) const { _mm512_storeu_pd(p, v); }
  void store(double* p, Some part) const { _mm512_mask_storeu_pd(p, mask(part), v); }
  static F64 merge(All, F64 a, F64) { return a; }
  static F64 merge(Some part, F64 a, F64 b) { return {_mm512_mask_blend_pd(mask(part), b.v, a.v)}; }
  friend F64 operator+(F64 a, F64 b) { return {_mm512_add_pd(a.v, b.v)}; }
  friend F64 operator-(F64 a, F64 b) { return {_mm512_sub_pd(a.v, b.v)}; }
  friend F64 operator*(F64 a, F64 b) { return {_mm512_mul_pd(a.v, b.v)}; }
  friend F64 operator/(F64 a, F64 b) { return {_mm512_div_pd(a.v, b.v)}; }
  friend __mmask8 operator>(F64 a, F64 b) { return _mm512_cmp_pd_mask(a.v, b.v, _CMP_GT_OQ); }
  friend F64 fma(F64 a, F64 b, F64 c) { return {_mm512_fmadd_pd(a.v, b.v, c.v)}; }
  friend F64 max(F64 a, F64 b) { return {_mm512_max_pd(a.v, b.v)}; }
  friend F64 min(F64 a, F64 b) { return {_mm512_min_pd(a.v, b.v)}; }
  friend F64 sqrt(F64 a) { return {_mm512_sqrt_pd(a.v)}; }
  friend F64 select(__mmask8 m, F64 a, F64 b) { return {_mm512_mask_blend_pd(m, b.v, a.v)}; }
  friend F64 scale(F64 x, F64 n) { return {_mm512_scalef_pd(x.v, n.v)}; }
  double sum() const { return _mm512_reduce_add_pd(v); }
  double largest() const { return _mm512_reduce_max_pd(v); }

  static void transpose(F64* r) {
    F64 t[8];
    for (int i = 0; i < 8; i += 2) {
      t[i].v = _mm512_unpacklo_pd(r[i].v, r[i + 1].v);
      t[i + 1].v = _mm512_unpackhi_pd(r[i].v, r[i + 1].v);
    }
    // Now t[2i], t[2i+1] hold 2 x 2 blocks; gather 128-bit pieces across the four pairs.
    for (int i = 0; i < 2; ++i) {
      r[i].v = _mm512_shuffle_f64x2(t[i].v, t[i + 2].v, 0x88);
      r[i + 2].v = _mm512_shuffle_f64x2(t[i].v, t[i + 2].v, 0xdd);
      r[i + 4].v = _mm512_shuffle_f64x2(t[i + 4].v, t[i + 6].v, 0x88);
      r[i + 6].v = _mm512_shuffle_f64x2(t[i + 4].v, t[i + 6].v, 0xdd);
    }
    for (int i = 0; i < 4; ++i) {
      t[i].v = _mm512_shuffle_f64x2(r[i].v, r[i + 4].v, 0x88);
      t[i + 4].v = _mm512_shuffle_f64x2(r[i].v, r[i + 4].v, 0xdd);
    }
    for (int i = 0; i < 8; ++i) r[i] = t[i];
  }

 private:
  static F64 from_upper(__m128i half) { return {_mm512_cvtps_pd(_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(half), 16)))}; }
};

struct Words {
  static constexpr int lanes = 8;
  __m512i v;

  static Words set(std::uint64_t x) { return {_mm512_set1_epi64(std::int64_t(x))}; }
  static Words count() { return {_mm512_set_epi64(7, 6, 5, 4, 3, 2, 1, 0)}; }
  void store(std::uint64_t* p) const { _mm512_storeu_si512(p, v); }
  friend Words operator+(Words a, Words b) { return {_mm512_add_epi64(a.v, b.v)}; }
  friend Words operator^(Words a, Words b) { return {_mm512_xor_si512(a.v, b.v)}; }
  friend Words product(Words a, Words b) { return {_mm512_mul_epu32(a.v, b.v)}; }
  friend Words high(Words a) { return {_mm512_srli_epi64(a.v, 32)}; }
  friend Words join(Words low, Words upper) {
    return {_mm512_or_si512(_mm512_and_si512(low.v, _mm512_set1_epi64(0xffffffff)), _mm512_slli_epi64(upper.v, 32))};
  }
};

}  // namespace
}  // namespace shardmark::cpu
