#include "data/utf8.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <iterator>

namespace shardmark {
namespace {

/// Length of the well-formed sequence that `text` starts with; 0: none. Overlong forms, surrogates and code points above U+10FFFF are not
/// well-formed (Unicode 15, table 3-7).
std::size_t sequence_length(std::string_view text) {
  auto byte = [&](std::size_t i) { return i < text.size() ? std::uint8_t(text[i]) : std::uint8_t{0}; };
  auto within = [&](std::size_t i, unsigned low, unsigned high) { return byte(i) >= low && byte(i) <= high; };
  auto tail = [&](std::size_t i) { return within(i, 0x80, 0xBF); };
  std::uint8_t const lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return tail(1) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    bool const second = within(1, lead == 0xE0 ? 0xA0 : 0x80, lead == 0xED ? 0x9F : 0xBF);
    return second && tail(2) ? 3 : 0;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    bool const second = within(1, lead == 0xF0 ? 0x90 : 0x80, lead == 0xF4 ? 0x8F : 0xBF);
    return second && tail(2) && tail(3) ? 4 : 0;
  }
  return 0;
}

}  // namespace

std::string escape_invalid_utf8(std::string_view bytes) {
  std::string out;
  out.reserve(bytes.size());
  while (!bytes.empty()) {
    std::size_t const length = sequence_length(bytes);
    if (length == 0) {
      fmt::format_to(std::back_inserter(out), "\\x{:02x}", std::uint8_t(bytes[0]));
    } else {
      out.append(bytes.substr(0, length));
    }
    bytes.remove_prefix(length == 0 ? 1 : length);
  }
  return out;
}

}  // namespace shardmark
