#pragma once
// SHA-256, for records: says that data or a program is the same, detects accidental change; no more is promised.

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace shardmark {

/// Hashes pieces as if they were one.
class Sha256 {
 public:
  Sha256();
  Sha256& add(std::span<std::byte const> bytes);
  /// 64 lower-case hexadecimal digits; ends the use of this object.
  std::string hex();

 private:
  std::unique_ptr<void, void (*)(void*)> context_;  // libcrypto's, whose headers stay in one file
};

inline std::string sha256_hex(std::span<std::byte const> bytes) { return Sha256().add(bytes).hex(); }
inline std::string sha256_hex(std::string_view text) { return sha256_hex(std::as_bytes(std::span(text))); }

}  // namespace shardmark
