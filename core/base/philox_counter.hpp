#pragma once
// What Randoms enciphers, for those who make many of its blocks at once: Philox4x32-10 of the counter (index, philox_stream()), 64 bits
// each with the low word first, under the seed as key.

#include "base/random.hpp"

namespace shardmark {

/// The stream folded with purpose and lane.
constexpr std::uint64_t philox_stream(Purpose purpose, std::uint64_t stream, std::uint32_t lane = 0) {
  return stream * 0x9E3779B97F4A7C15ull + (std::uint64_t(purpose) << 32 | lane) * 0xBF58476D1CE4E5B9ull;
}

}  // namespace shardmark
