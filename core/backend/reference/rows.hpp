#pragma once
// Rows of strided views: the last dimension is dense, the leading ones may have any stride.

#include <cstdint>

#include "backend/bfloat16.hpp"
#include "backend/op_access.hpp"

namespace shardmark::reference {

/// First element of row r, where rows are counted over all leading dimensions in row-major order.
template <class T>
T* row(View const& view, std::int64_t r) {
  std::int64_t offset = 0;
  for (int i = view.rank - 2; i >= 0; --i) {
    std::int64_t const n = view.shape[std::size_t(i)];
    offset += r % n * view.stride[std::size_t(i)];
    r /= n;
  }
  return view.as<T>() + offset;
}

/// Calls f(pointer into each view's row...) for every row; all views have as many rows as the first.
template <class T, class F, class... V>
void each_row(F&& f, View const& first, V const&... others) {
  std::int64_t const rows = rows_of(first);
  for (std::int64_t r = 0; r < rows; ++r) f(row<T>(first, r), row<T>(others, r)...);
}

/// Calls f(a tag object of T) with the floating type that `type` names.
template <class F>
void with_floating(DType type, F&& f) {
  switch (type) {
    case DType::f64:
      return f(double{});
    case DType::f32:
      return f(float{});
    case DType::bf16:
      return f(bfloat16{});
    default:
      expect(false, "an operation needs floating-point numbers");
  }
}

}  // namespace shardmark::reference
