#pragma once
// Which elements dropout keeps. One definition for every backend, so that a mask depends neither on how ranks share the work nor on
// who computes it, and recomputation gets the same one.
//
// Element e (its index in the full tensor of one sample) owns word e % 4 of Philox block e / 4 of the stream
// (seed, Purpose::dropout, dropout_stream(layer, update, sample)), and is kept when word >= p 2^32. One block serves four elements.

#include <cmath>
#include <cstdint>

#include "backend/ops.hpp"
#include "base/random.hpp"

namespace shardmark {

/// Folds the key's parts: each goes through the finaliser of MurmurHash3, so that neighbouring layers, updates and samples get
/// unrelated streams.
constexpr std::uint64_t dropout_stream(std::uint64_t layer, std::int64_t update, std::int64_t sample) {
  std::uint64_t h = 0x9E3779B97F4A7C15ull;
  for (std::uint64_t part : {layer, std::uint64_t(update), std::uint64_t(sample)}) {
    h = (h ^ part) * 0xFF51AFD7ED558CCDull;
    h = (h ^ h >> 33) * 0xC4CEB9FE1A85EC53ull;
    h ^= h >> 33;
  }
  return h;
}

/// Words below this are dropped; 64 bits, since p may round up to 1.
inline std::uint64_t dropout_threshold(double p) { return std::uint64_t(std::ceil(p * 0x1p32)); }

/// The mask of one row of x. Consecutive elements share a block, so ask in ascending order.
class DropoutMask {
 public:
  DropoutMask(Dropout const& op, std::int64_t update, std::int64_t sample)
      : words_(op.seed, Purpose::dropout, dropout_stream(op.layer, update, sample)), threshold_(dropout_threshold(op.p)) {}

  bool keep(std::int64_t element) {
    if (std::int64_t const block = element / 4; block != at_) {
      block_ = words_.block(std::uint64_t(block));
      at_ = block;
    }
    return block_[std::size_t(element % 4)] >= threshold_;
  }

 private:
  Randoms words_;
  std::uint64_t threshold_;
  std::int64_t at_ = -1;
  std::array<std::uint32_t, 4> block_{};
};

/// Index in the full tensor of one sample of the local element (line, column), where a line is one run of the last dimension
/// and `columns` its local length.
constexpr std::int64_t dropout_element(Dropout const& op, std::int64_t line, std::int64_t column, std::int64_t columns) {
  return line * (op.full_width == 0 ? columns : op.full_width) + op.first_element + column;
}

}  // namespace shardmark
