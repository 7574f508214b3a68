#pragma once
// Which way of making a matrix product is the fastest, by shape: tried out at the first large product of each shape, then kept for the
// life of the process. Only in `fastest` mode: ways differ in bits.

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "backend/ops.hpp"

namespace shardmark::cpu {

/// library: oneDNN's gemm. packed: its primitive, on a b that is brought into the primitive's own layout first. own: the
/// deterministic kernels.
enum class Path : std::uint8_t { library, packed, own };
inline constexpr std::size_t paths = 3;
std::string_view name(Path path);

struct ProductShape {
  std::int64_t m, n, k;
  Transpose ta, tb;
  DType operands, output;
  auto operator<=>(ProductShape const&) const = default;
  double flops() const { return 2 * double(m) * double(n) * double(k); }
};

/// What was chosen for one shape; rates in flops per second, 0 where a path was not tried.
struct MatmulChoice {
  ProductShape shape;
  Path path = Path::library;
  std::array<double, paths> rates{};
};

/// Of all shapes that were tried out in this process, in order of shape.
std::vector<MatmulChoice> matmul_choices();
/// "1024x512x2048 NT bf16".
std::string to_string(ProductShape const& shape);

/// nullptr: not tried out yet.
MatmulChoice const* find_choice(ProductShape const& shape);
/// Keeps the fastest: paths[0] unless another is 2 % faster. When two threads try out one shape, the first result stays.
void choose_path(ProductShape const& shape, std::span<Path const> tried, std::array<double, paths> const& rates);
/// Of the calling thread, in seconds: what other processes do with the cores doesn't count.
double thread_seconds();

/// Smaller products aren't worth a trial.
inline constexpr double least_flops = double(1 << 24);

/// make(path) makes the product, by the path that is known to be the fastest or, the first time, by each of `of`. A product that
/// accumulates can't be repeated: it uses what is known, or of[0].
template <class Make>
void by_fastest_path(ProductShape const& shape, Write write, std::span<Path const> of, Make&& make) {
  if (MatmulChoice const* const known = find_choice(shape)) return make(known->path);
  if (write == Write::accumulate || shape.flops() < least_flops) return make(of.front());
  std::array<double, paths> rates{};
  for (Path path : of) {
    make(path);  // makes code, touches memory
    for (int round = 0; round < 2; ++round) {
      double const begin = thread_seconds();
      make(path);
      double& rate = rates[std::size_t(path)];
      rate = std::max(rate, shape.flops() / std::max(1e-9, thread_seconds() - begin));
    }
  }
  choose_path(shape, of, rates);
}

}  // namespace shardmark::cpu
