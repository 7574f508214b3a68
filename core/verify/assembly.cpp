#include "verify/assembly.hpp"

#include <algorithm>
#include <cmath>

namespace shardmark {
namespace {

constexpr std::size_t chunk_values = std::size_t(1) << 16;
constexpr std::size_t chunk_bytes = std::size_t(1) << 22;

}  // namespace

// Pages are taken from the system when they are first touched: the slab may be generous.
Assembly::Assembly(Communicator& world)
    : world_(world),
      pages_((std::size_t(world.size()) + 4) * (chunk_values * sizeof(double) + chunk_bytes)),
      slab_{pages_.data(), pages_.bytes()},
      arena_(slab_, ledger_) {
  arena_.watch(stream_);
}

std::vector<double> Assembly::gather(std::span<double const> mine) {
  std::size_t const n = mine.size(), count = std::size_t(ranks());
  std::vector<double> out(n * count), piece;
  for (std::size_t at = 0; at < n; at += chunk_values) {
    std::size_t const size = std::min(chunk_values, n - at);
    piece.resize(size * count);
    all_gather(world_, arena_, stream_, mine.subspan(at, size), piece);
    for (std::size_t r = 0; r < count; ++r) std::copy_n(&piece[r * size], size, &out[r * n + at]);
  }
  return out;
}

void Assembly::sum(std::span<double> values) {
  for (std::size_t at = 0; at < values.size(); at += chunk_values)
    all_sum(world_, arena_, stream_, values.subspan(at, std::min(chunk_values, values.size() - at)));
}

void Assembly::maximum(std::span<double> values) {
  std::vector<double> const all = gather(values);
  for (std::size_t i = 0; i < all.size(); ++i) {
    double& most = values[i % values.size()];
    if (!(all[i] <= most)) most = std::isnan(most) ? most : all[i];
  }
}

void Assembly::from_first(std::span<std::byte> bytes) {
  for (std::size_t at = 0; at < bytes.size(); at += chunk_bytes)
    broadcast(world_, arena_, stream_, bytes.subspan(at, std::min(chunk_bytes, bytes.size() - at)), 0);
}

}  // namespace shardmark
