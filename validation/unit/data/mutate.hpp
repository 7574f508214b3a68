#pragma once
// Damage to files, the same for the same random numbers.

#include <algorithm>
#include <random>
#include <string>

namespace shardmark::test {

/// Bytes flipped, overwritten with extremes, cut off, doubled or inserted: one to four times. Half of the damage goes to the first
/// `header` bytes, where it matters most.
inline std::string mutate(std::string bytes, std::mt19937& random, std::size_t header) {
  auto const below = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
  for (std::size_t times = 1 + below(4); times > 0 && !bytes.empty(); --times) {
    std::size_t const at = below(2) == 0 ? below(std::min(bytes.size(), header)) : below(bytes.size());
    switch (below(5)) {
      case 0:
        bytes[at] = char(bytes[at] ^ char(1u << below(8)));
        break;
      case 1:
        bytes[at] = char(below(2) == 0 ? 0xff : 0x80);
        break;
      case 2:
        bytes.resize(at);
        break;
      case 3:
        bytes += bytes.substr(at);
        break;
      case 4:
        bytes.insert(at, 1, char(below(256)));
        break;
    }
  }
  return bytes;
}

}  // namespace shardmark::test
