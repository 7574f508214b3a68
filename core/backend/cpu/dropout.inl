#pragma once
// Dropout. Masks come in whole blocks of Philox4x32-10 (Salmon et al., SC 2011), many at a time: plain loops over blocks, of which the
// compiler makes vectors of this file's instruction set. The bits are those of Randoms (base/random.hpp).

#include <cstring>
#include <type_traits>

#include "backend/cpu/kernels.hpp"
#include "backend/cpu/vec.hpp"

namespace shardmark::cpu {
namespace {

constexpr std::int64_t blocks_at_once = 64, elements_at_once = 4 * blocks_at_once;

/// 1 where a word of blocks [first, first + blocks_at_once) is at least the threshold, else 0.
inline void keep_of_blocks(KeepCall const& call, std::uint64_t first, float* keep) {
  constexpr std::uint64_t multiplier0 = 0xD2511F53, multiplier1 = 0xCD9E8D57;
  constexpr std::uint32_t step0 = 0x9E3779B9, step1 = 0xBB67AE85;
  constexpr int rounds = 10;
  std::uint32_t const threshold = std::uint32_t(call.threshold);
  for (std::int64_t j = 0; j < blocks_at_once; ++j) {
    std::uint64_t const index = first + std::uint64_t(j);
    std::uint32_t c0 = std::uint32_t(index), c1 = std::uint32_t(index >> 32);
    std::uint32_t c2 = std::uint32_t(call.stream), c3 = std::uint32_t(call.stream >> 32);
    std::uint32_t k0 = std::uint32_t(call.seed), k1 = std::uint32_t(call.seed >> 32);
    for (int round = 0; round < rounds; ++round, k0 += step0, k1 += step1) {
      std::uint64_t const product0 = multiplier0 * c0, product1 = multiplier1 * c2;
      c0 = std::uint32_t(product1 >> 32) ^ c1 ^ k0;
      c2 = std::uint32_t(product0 >> 32) ^ c3 ^ k1;
      c1 = std::uint32_t(product1);
      c3 = std::uint32_t(product0);
    }
    keep[4 * j] = c0 >= threshold ? 1.f : 0.f;
    keep[4 * j + 1] = c1 >= threshold ? 1.f : 0.f;
    keep[4 * j + 2] = c2 >= threshold ? 1.f : 0.f;
    keep[4 * j + 3] = c3 >= threshold ? 1.f : 0.f;
  }
}

inline void keep_pass(KeepCall const& call, std::int64_t first, float* keep, std::int64_t n) {
  if (call.threshold > 0xffffffff) {
    std::memset(keep, 0, std::size_t(n) * sizeof(float));
    return;
  }
  alignas(64) float block[elements_at_once];
  for (std::int64_t i = 0; i < n;) {
    std::int64_t const skipped = (first + i) % 4, some = smaller(n - i, elements_at_once - skipped);
    keep_of_blocks(call, std::uint64_t((first + i) / 4), block);
    std::memcpy(keep + i, block + skipped, std::size_t(some) * sizeof(float));
    i += some;
  }
}

/// What is dropped becomes +0, whatever it was.
template <class V, class T>
void dropout_pass(T const* x, float const* keep, typename V::Scalar scale, T* y, std::int64_t n) {
  each_vector<V>(n, [=](std::int64_t i, auto part) {
    V kept;
    if constexpr (std::is_same_v<V, F64>)
      kept = V::widen(keep + i, part);
    else
      kept = V::load(keep + i, part);
    select(kept > V::set(0), V::load(x + i, part) * V::set(scale), V::set(0)).store(y + i, part);
  });
}

}  // namespace
}  // namespace shardmark::cpu
