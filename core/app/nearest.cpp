#include "app/nearest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <vector>

namespace shardmark {

int edit_distance(std::string_view a, std::string_view b) {
  // Optimal string alignment: rows i-2, i-1 and i of the table.
  std::vector<int> before(b.size() + 1), above(b.size() + 1), row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) above[j] = int(j);
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = int(i);
    for (std::size_t j = 1; j <= b.size(); ++j) {
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, above[j - 1] + int(a[i - 1] != b[j - 1])});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) row[j] = std::min(row[j], before[j - 2] + 1);
    }
    std::swap(before, above);
    std::swap(above, row);
  }
  return above[b.size()];
}

std::string nearest(std::string_view word, std::span<std::string const> candidates) {
  constexpr std::size_t longest_word = 64;  // longer ones are no slips of the finger
  if (word.size() > longest_word) return {};
  std::string best;
  int best_distance = std::max(2, int(word.size()) / 3) + 1;
  for (std::string const& candidate : candidates) {
    int const distance = edit_distance(word, candidate);
    if (distance < best_distance && distance < int(candidate.size())) {  // at least one letter in common
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string did_you_mean(std::string_view word, std::span<std::string const> candidates) {
  std::string const close = nearest(word, candidates);
  return close.empty() ? "" : fmt::format("did you mean {}?", close);
}

std::string printable(std::string_view word) {
  constexpr std::size_t longest = 100;
  std::string text = "\"";
  for (char c : word.substr(0, longest)) {
    auto const byte = static_cast<unsigned char>(c);
    text += byte >= 0x20 && byte < 0x7f ? std::string(1, c) : fmt::format("\\x{:02x}", byte);
  }
  return text + (word.size() > longest ? "...\"" : "\"");
}

}  // namespace shardmark
