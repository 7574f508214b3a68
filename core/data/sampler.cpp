#include <algorithm>
#include <bit>

#include "base/error.hpp"
#include "base/random.hpp"
#include "data/dataset.hpp"

namespace shardmark {
namespace {

/// Four rounds make a Feistel network pseudo-random (Luby and Rackoff 1988); tiny halves need more to mix.
constexpr std::uint32_t feistel_rounds = 8;

/// A permutation of [0, 4^half_bits). Every round is an even one, so half of the keys also swap 0 and 1: else orders of a few samples
/// wouldn't be equally likely.
std::uint64_t feistel(std::uint64_t value, int half_bits, Randoms const& randoms) {
  std::uint64_t const mask = (std::uint64_t{1} << half_bits) - 1;
  std::uint64_t left = value >> half_bits, right = value & mask;
  for (std::uint32_t round = 0; round < feistel_rounds; ++round) {
    std::uint64_t const mixed = left ^ (randoms.block(right, round)[0] & mask);
    left = right;
    right = mixed;
  }
  std::uint64_t const image = left << half_bits | right;
  return image < 2 ? image ^ (randoms.block(0, feistel_rounds)[0] & 1) : image;
}

}  // namespace

std::int64_t permuted(std::int64_t index, std::int64_t n, std::uint64_t seed, std::int64_t epoch) {
  expect(index >= 0 && index < n, "an index outside the permutation");
  if (n == 1) return 0;
  int const half_bits = (std::bit_width(std::uint64_t(n - 1)) + 1) / 2;
  Randoms const randoms(seed, Purpose::shuffle, std::uint64_t(epoch));
  // Cycle walking (Black and Rogaway 2002): the network permutes at most 4n values; walking on along the cycle until it comes back
  // below n is a permutation of [0, n), and takes under four steps on average.
  std::uint64_t value = std::uint64_t(index);
  do value = feistel(value, half_bits, randoms);
  while (value >= std::uint64_t(n));
  return std::int64_t(value);
}

Sampler::Sampler(std::int64_t samples, std::int64_t global_batch, std::uint64_t seed)
    : samples_(samples), global_batch_(global_batch), seed_(seed) {
  expect(samples > 0 && global_batch > 0, "a sampler needs samples and a batch size");
}

std::int64_t Sampler::updates_per_epoch() const { return (samples_ - 1) / global_batch_ + 1; }

std::span<std::int64_t> Sampler::samples_of(std::int64_t update, std::span<std::int64_t> out) const {
  expect(update >= 0, "updates are numbered from 0");
  std::int64_t const epoch = update / updates_per_epoch();
  std::int64_t const first = update % updates_per_epoch() * global_batch_;
  std::int64_t const count = std::min(global_batch_, samples_ - first);
  expect(std::int64_t(out.size()) >= count, "room for one global batch");
  for (std::int64_t i = 0; i < count; ++i) out[std::size_t(i)] = permuted(first + i, samples_, seed_, epoch);
  return out.first(std::size_t(count));
}

}  // namespace shardmark
