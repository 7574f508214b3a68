#pragma once
// How work is shared: pieces that differ by at most one, larger ones first.

#include <algorithm>
#include <cstdint>

#include "base/error.hpp"

namespace shardmark {

/// Positions [begin, end).
struct Range {
  std::int64_t begin = 0, end = 0;
  constexpr std::int64_t size() const { return end - begin; }
};

/// Piece `i` of `n` that cover `total` in order: 10 over 4 is 3, 3, 2, 2. Some are empty when total < n.
inline Range piece_of(std::int64_t total, int n, int i) {
  expect(total >= 0 && n > 0 && i >= 0 && i < n, "a piece that doesn't exist");
  std::int64_t const small = total / n, larger_ones = total % n;
  std::int64_t const begin = i * small + std::min<std::int64_t>(i, larger_ones);
  return {begin, begin + small + (i < larger_ones ? 1 : 0)};
}

}  // namespace shardmark
