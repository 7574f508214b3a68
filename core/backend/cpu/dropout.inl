#pragma once
// Dropout. Masks come in whole blocks of Philox4x32-10 (Salmon et al., SC 2011), a vector of blocks at a time. The bits are those of
// Randoms (base/random.hpp).

#include <cstring>
#include <type_traits>

#include "backend/cpu/kernels.hpp"
#include "backend/cpu/vec.hpp"

namespace shardmark::cpu {
namespace {

constexpr std::int64_t blocks_at_once = 64, elements_at_once = 4 * blocks_at_once;

/// 1 where a word of blocks [first, first + blocks_at_once) is at least the threshold, else 0. The four words of a block lie in the low
/// halves of four lanes; what is above them doesn't matter, since only low halves are multiplied.
inline void keep_of_blocks(KeepCall const& call, std::uint64_t first, float* keep) {
  constexpr std::uint32_t multiplier0 = 0xD2511F53, multiplier1 = 0xCD9E8D57, step0 = 0x9E3779B9, step1 = 0xBB67AE85;
  constexpr int rounds = 10;
  // Two vectors at a time: a product takes several cycles.
  constexpr int together = 2;
  static_assert(blocks_at_once % (together * Words::lanes) == 0);
  std::uint64_t words[2 * blocks_at_once];
  for (std::int64_t j = 0; j < blocks_at_once; j += together * Words::lanes) {
    Words c0[together], c1[together], c2[together], c3[together];
    for (int t = 0; t < together; ++t) {
      c0[t] = Words::set(first + std::uint64_t(j + t * Words::lanes)) + Words::count();
      c1[t] = high(c0[t]);
      c2[t] = Words::set(call.stream);
      c3[t] = high(c2[t]);
    }
    std::uint32_t key0 = std::uint32_t(call.seed), key1 = std::uint32_t(call.seed >> 32);
    for (int round = 0; round < rounds; ++round, key0 += step0, key1 += step1)
      for (int t = 0; t < together; ++t) {
        Words const product0 = product(c0[t], Words::set(multiplier0)), product1 = product(c2[t], Words::set(multiplier1));
        c0[t] = high(product1) ^ c1[t] ^ Words::set(key0);
        c2[t] = high(product0) ^ c3[t] ^ Words::set(key1);
        c1[t] = product1;
        c3[t] = product0;
      }
    for (int t = 0; t < together; ++t) {
      join(c0[t], c1[t]).store(words + j + t * Words::lanes);
      join(c2[t], c3[t]).store(words + blocks_at_once + j + t * Words::lanes);
    }
  }
  std::uint32_t const threshold = std::uint32_t(call.threshold);
  for (std::int64_t j = 0; j < blocks_at_once; ++j)
    for (int pair = 0; pair < 2; ++pair) {
      std::uint64_t const both = words[pair * blocks_at_once + j];
      keep[4 * j + 2 * pair] = std::uint32_t(both) >= threshold ? 1.f : 0.f;
      keep[4 * j + 2 * pair + 1] = std::uint32_t(both >> 32) >= threshold ? 1.f : 0.f;
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
