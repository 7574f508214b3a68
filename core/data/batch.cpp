#include "data/batch.hpp"

#include <algorithm>
#include <cstring>

namespace shardmark {
namespace {

std::size_t bytes_of(DType type, std::vector<std::int64_t> const& shape) {
  std::size_t bytes = width(type);
  for (std::int64_t extent : shape) bytes *= std::size_t(extent);
  return bytes;
}

/// FNV-1a on words of 8 bytes, with a shift after each multiplication: without it the high bits of a word would never reach
/// the low bits of the hash. A tail shorter than a word is padded with zeros.
std::uint64_t hash_words(std::uint64_t hash, std::span<std::byte const> bytes) {
  for (std::size_t at = 0; at < bytes.size(); at += sizeof(std::uint64_t)) {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes.data() + at, std::min(sizeof word, bytes.size() - at));
    hash = (hash ^ word) * 1099511628211ull;
    hash ^= hash >> 32;
  }
  return hash;
}

}  // namespace

void reserve(HostBatch& batch, SampleShape const& shape, std::int64_t rows) {
  batch.input.reserve(std::size_t(rows) * bytes_of(shape.input_type, shape.input));
  batch.target.reserve(std::size_t(rows) * bytes_of(shape.target_type, shape.target));
  batch.samples.reserve(std::size_t(rows) * 2);
}

void fill(HostBatch& batch, Dataset const& data, std::int64_t update, std::span<std::int64_t const> ids) {
  SampleShape const& shape = data.shape();
  std::size_t const input_bytes = bytes_of(shape.input_type, shape.input), target_bytes = bytes_of(shape.target_type, shape.target);
  std::size_t const rows = ids.size();
  batch.update = update;
  batch.rows = std::int64_t(rows);
  batch.input.resize(rows * input_bytes);
  batch.target.resize(rows * target_bytes);
  batch.samples.resize(rows * 2);
  batch.counted = counted_of(data, ids);
  std::span<std::byte> const input = batch.input, target = batch.target;
  for (std::size_t row = 0; row < rows; ++row) {
    data.read(ids[row], input.subspan(row * input_bytes, input_bytes), target.subspan(row * target_bytes, target_bytes));
    batch.samples[2 * row] = update;
    batch.samples[2 * row + 1] = ids[row];
  }
  batch.hash = hash_words(hash_words(hash_words(14695981039346656037ull, std::as_bytes(std::span(batch.samples))), input), target);
}

std::int64_t counted_of(Dataset const& data, std::span<std::int64_t const> ids) {
  std::int64_t counted = 0;
  for (std::int64_t id : ids) counted += data.counted(id);
  return counted;
}

}  // namespace shardmark
