#include "data/sha256.hpp"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>

#include "base/error.hpp"

namespace shardmark {

std::string sha256_hex(std::span<std::byte const> bytes) {
  std::array<unsigned char, 32> digest{};
  unsigned size = 0;
  invariant(EVP_Digest(bytes.data(), bytes.size(), digest.data(), &size, EVP_sha256(), nullptr) == 1 && size == digest.size(),
            "libcrypto computes SHA-256");
  return fmt::format("{:02x}", fmt::join(digest, ""));
}

}  // namespace shardmark
