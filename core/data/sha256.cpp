#include "data/sha256.hpp"

#include <fmt/format.h>
#include <openssl/evp.h>

#include <array>

#include "base/error.hpp"

namespace shardmark {
namespace {

EVP_MD_CTX* context_of(void* context) { return static_cast<EVP_MD_CTX*>(context); }

void require_worked(int result) { invariant(result == 1, "libcrypto computes SHA-256"); }

}  // namespace

Sha256::Sha256() : context_(EVP_MD_CTX_new(), [](void* context) { EVP_MD_CTX_free(context_of(context)); }) {
  require_worked(EVP_DigestInit_ex(context_of(context_.get()), EVP_sha256(), nullptr));
}

Sha256& Sha256::add(std::span<std::byte const> bytes) {
  require_worked(EVP_DigestUpdate(context_of(context_.get()), bytes.data(), bytes.size()));
  return *this;
}

std::string Sha256::hex() {
  std::array<unsigned char, 32> digest{};
  unsigned size = 0;
  require_worked(EVP_DigestFinal_ex(context_of(context_.get()), digest.data(), &size));
  invariant(size == digest.size(), "a SHA-256 has 32 bytes");
  return fmt::format("{:02x}", fmt::join(digest, ""));
}

}  // namespace shardmark
