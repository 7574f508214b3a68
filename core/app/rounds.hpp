#pragma once
// Comparisons run in rounds; each round has an order of its own, so that drift of the machine favours nobody (docs/method.md).

#include <cstddef>
#include <cstdint>
#include <vector>

namespace shardmark {

/// 0 .. n-1 in random order; the same on every rank.
std::vector<std::size_t> order_of_round(std::size_t n, std::uint64_t seed, int round);

}  // namespace shardmark
