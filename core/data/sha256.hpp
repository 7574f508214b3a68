#pragma once
// SHA-256, for records: says that data or a program is the same, detects accidental change; no more is promised.

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace shardmark {

/// 64 lower-case hexadecimal digits.
std::string sha256_hex(std::span<std::byte const> bytes);
inline std::string sha256_hex(std::string_view text) { return sha256_hex(std::as_bytes(std::span(text))); }

}  // namespace shardmark
