#pragma once
// Fill and Copy: any strides, and casts between floating types.

#include "backend/reference/rows.hpp"

namespace shardmark::reference {

/// Calls f(offset in elements of each view) for every element of up to four dimensions, in row-major order.
template <class F>
void each_offset(View const& a, View const& b, F&& f) {
  std::int64_t n[4] = {1, 1, 1, 1}, sa[4] = {}, sb[4] = {};
  for (std::size_t i = 0; i < a.rank; ++i) n[i] = a.shape[i], sa[i] = a.stride[i], sb[i] = b.stride[i];
  for (std::int64_t i = 0; i < n[0]; ++i)
    for (std::int64_t j = 0; j < n[1]; ++j)
      for (std::int64_t k = 0; k < n[2]; ++k)
        for (std::int64_t l = 0; l < n[3]; ++l)
          f(i * sa[0] + j * sa[1] + k * sa[2] + l * sa[3], i * sb[0] + j * sb[1] + k * sb[2] + l * sb[3]);
}

/// One rounding, to nearest even.
template <class To, class From>
To cast(From value) {
  if constexpr (std::is_same_v<To, bfloat16> && std::is_same_v<From, double>)
    return round_to_bfloat16(value);
  else if constexpr (std::is_same_v<From, bfloat16> && !std::is_same_v<To, bfloat16>)
    return To(float(value));
  else
    return To(value);
}

template <class From, class To>
void copy(Copy const& o) {
  From const* const from = o.from.as<From>();
  To* const to = o.to.as<To>();
  each_offset(o.from, o.to, [=](std::int64_t i, std::int64_t j) { to[j] = cast<To>(from[i]); });
}

template <class T>
void fill(Fill const& o) {
  T const value = cast<T>(o.value);
  T* const to = o.to.as<T>();
  each_offset(o.to, o.to, [=](std::int64_t i, std::int64_t) { to[i] = value; });
}

}  // namespace shardmark::reference
