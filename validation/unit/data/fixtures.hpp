#pragma once
// Small data sets whose contents a person can predict.

#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "data/dataset.hpp"

namespace shardmark::test {

/// The raw bytes as a list of T.
template <class T>
std::vector<T> values(std::span<std::byte const> bytes) {
  std::vector<T> out(bytes.size() / sizeof(T));
  std::memcpy(out.data(), bytes.data(), bytes.size());
  return out;
}

/// Global sample ids of a batch, in order.
inline std::vector<std::int64_t> ids_of(HostBatch const& batch) {
  std::vector<std::int64_t> ids;
  for (std::int64_t row = 0; row < batch.rows; ++row) ids.push_back(batch.samples[std::size_t(2 * row + 1)]);
  return ids;
}

/// Sample i has the input {i, 10 i}, the target i % 2, and counts for counts[i] terms.
class Listed : public Dataset {
 public:
  explicit Listed(std::vector<std::int64_t> counts) : counts_(std::move(counts)) { shape_ = {DType::i32, DType::i32, {2}, {1}, 2}; }
  static Listed of_size(std::int64_t n) { return Listed(std::vector<std::int64_t>(std::size_t(n), 1)); }

  std::int64_t size() const override { return std::int64_t(counts_.size()); }
  SampleShape const& shape() const override { return shape_; }
  DataSource const& source() const override { return source_; }
  std::int64_t counted(std::int64_t sample) const override { return counts_[std::size_t(sample)]; }
  void read(std::int64_t sample, std::span<std::byte> input, std::span<std::byte> target) const override {
    std::int32_t const in[2] = {std::int32_t(sample), std::int32_t(10 * sample)}, out = std::int32_t(sample % 2);
    std::memcpy(input.data(), in, sizeof in);
    std::memcpy(target.data(), &out, sizeof out);
  }

 private:
  std::vector<std::int64_t> counts_;
  SampleShape shape_;
  DataSource source_{.kind = "listed", .path = {}, .bytes = 0, .sha256 = {}};
};

}  // namespace shardmark::test
