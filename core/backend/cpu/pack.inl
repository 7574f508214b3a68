#pragma once
// Packing for the matmul: panels of `width` columns, k after k, so that the micro-kernel reads memory in order.
// The sources are strided; the transposed case goes through blocks of lanes x lanes in registers. Narrow elements are widened here.

#include "backend/cpu/vec.hpp"

namespace shardmark::cpu {
namespace {

/// Rows that are fetched before they are packed: processors don't foresee strides of a page and more.
constexpr int rows_ahead = 12;

/// out[q * room + j] = x[q * stride + j] for q < k, j < width; zeros for width <= j < room.
template <class V, int room, class X>
void pack_rows(X const* x, std::int64_t stride, std::int64_t k, std::int64_t width, typename V::Scalar* out) {
  for (std::int64_t q = 0; q < k; ++q, x += stride, out += room)
    for (int j = 0; j < room; j += V::lanes) {
      __builtin_prefetch(x + rows_ahead * stride + j);
      Some const have{smaller<std::int64_t>(V::lanes, width > j ? width - j : 0)};
      Some const want{smaller<std::int64_t>(V::lanes, room - j)};
      V::load(x + j, have).store(out + j, want);
    }
}

/// out[q * room + j] = x[j * stride + q] for q < k, j < width; zeros for width <= j < room.
template <class V, int room, class X>
void pack_columns(X const* x, std::int64_t stride, std::int64_t k, std::int64_t width, typename V::Scalar* out) {
  constexpr int lanes = V::lanes;
  for (std::int64_t q = 0; q < k; q += lanes) {
    std::int64_t const rows = smaller<std::int64_t>(lanes, k - q);
    for (int j = 0; j < room; j += lanes) {
      V block[lanes];
#pragma GCC unroll 16
      for (int i = 0; i < lanes; ++i) {
        bool const inside = j + i < width;
        block[i] = inside ? (rows == lanes ? V::load(x + (j + i) * stride + q) : V::load(x + (j + i) * stride + q, Some{rows})) : V::set(0);
      }
      V::transpose(block);
      Some const want{smaller<std::int64_t>(lanes, room - j)};
#pragma GCC unroll 16
      for (int i = 0; i < lanes; ++i)
        if (i < rows) block[i].store(out + (q + i) * room + j, want);
    }
  }
}

}  // namespace
}  // namespace shardmark::cpu
