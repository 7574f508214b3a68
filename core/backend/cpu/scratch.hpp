#pragma once
// What each thread that runs operations has of its own, made at its first operation and kept: working memory of the kernels, and
// the library's thread count.

#include <cstddef>
#include <cstdint>
#include <optional>

#include "backend/backend.hpp"

namespace shardmark::cpu {

// Blocks of the matmul (Van Zee and van de Geijn 2015, "BLIS"), measured on Zen 4: both fit a second-level cache of 1 MiB together, which
// beats a larger block of b in the third level by 3 %.
inline constexpr std::int64_t block_k = 320;
inline constexpr std::int64_t block_a_bytes = 430080;  // 336 rows of 320 floats
inline constexpr std::int64_t block_b_bytes = 655360;  // 512 columns of 320 floats
inline constexpr std::int64_t block_c_bytes = 688128;  // 336 x 512 sums of a c that is narrower than they are
/// One block of a, or all of them where they fit: 1024 x 1024 floats.
inline constexpr std::int64_t packed_a_bytes = 4 << 20;
static_assert(block_a_bytes <= packed_a_bytes);

/// Attention works on tiles of queries x keys.
inline constexpr std::int64_t attention_tile = 64;

class Scratch {
 public:
  Scratch();
  template <class T>
  T* packed_a() const {
    return reinterpret_cast<T*>(pages_.data());
  }
  template <class T>
  T* block_b() const {
    return reinterpret_cast<T*>(pages_.data() + packed_a_bytes);
  }
  template <class T>
  T* block_c() const {
    return reinterpret_cast<T*>(pages_.data() + block_c_at);
  }
  /// Two tiles, `which` = 0 or 1.
  template <class T>
  T* tile(int which) const {
    return reinterpret_cast<T*>(pages_.data() + tiles_at) + which * attention_tile * attention_tile;
  }
  /// Room for `elements` sums, larger than any asked for before or the same memory.
  template <class T>
  T* sums(std::int64_t elements) {
    return reinterpret_cast<T*>(room(std::size_t(elements) * sizeof(T)));
  }

 private:
  static constexpr std::int64_t block_c_at = packed_a_bytes + block_b_bytes, tiles_at = block_c_at + block_c_bytes;
  std::byte* room(std::size_t bytes);
  Pages pages_;
  std::optional<Pages> sums_;
};

/// The calling thread's. Made on first use, so that a backend may be shared by rank threads.
Scratch& scratch_of_thread();

}  // namespace shardmark::cpu
