#pragma once
// Files of tensors that a test writes, in a folder that ends with it.

#include "run/checkpoint/safetensors.hpp"
#include "validation/unit/data/files.hpp"

namespace shardmark::test {

/// A file with this header, as it stands, and this data.
inline std::string safetensors(std::string const& header, std::string const& data) {
  return little_endian(std::vector<std::uint64_t>{header.size()}) + header + data;
}

template <class T>
std::span<std::byte const> bytes_of(std::vector<T> const& values) {
  return std::as_bytes(std::span(values));
}

template <class T>
std::vector<T> read_all(SafetensorsFile const& file, std::string const& name, std::size_t elements) {
  std::vector<T> out(elements);
  file.read(name, {}, std::as_writable_bytes(std::span(out)));
  return out;
}

inline std::string text_of(std::filesystem::path const& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace shardmark::test
