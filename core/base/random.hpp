#pragma once
// Counter-based random numbers: Philox4x32-10 (Salmon et al., SC 2011) from Random123.
// Every value is a pure function of (seed, purpose, stream, index), so it doesn't depend on how ranks share the work.

#include <array>
#include <cstdint>
#include <string_view>

namespace shardmark {

enum class Purpose : std::uint32_t { initial_weights = 1, dropout, shuffle, synthetic_data, perturbation, delay, order };

/// A stable 64-bit hash of a name (FNV-1a): the stream of a parameter.
constexpr std::uint64_t stream_of(std::string_view text) {
  std::uint64_t h = 14695981039346656037ull;
  for (char c : text) h = (h ^ std::uint8_t(c)) * 1099511628211ull;
  return h;
}

class Randoms {
 public:
  Randoms(std::uint64_t seed, Purpose purpose, std::uint64_t stream) : seed_(seed), purpose_(purpose), stream_(stream) {}

  /// Four independent 32-bit words for `index`; `lane` separates values of one index.
  std::array<std::uint32_t, 4> block(std::uint64_t index, std::uint32_t lane = 0) const;
  /// Uniform in [0, 1) with 53 bits.
  double uniform(std::uint64_t index) const;
  /// Standard normal (Box-Muller); one value an index.
  double normal(std::uint64_t index) const;
  /// +1 or -1.
  double sign(std::uint64_t index) const { return (block(index)[0] & 1) != 0 ? 1.0 : -1.0; }
  /// Unbiased integer in [0, n).
  std::uint64_t below(std::uint64_t n, std::uint64_t index) const;

 private:
  std::uint64_t seed_;
  Purpose purpose_;
  std::uint64_t stream_;
};

}  // namespace shardmark
