#pragma once
// Matrix products as the definition has them: every element is the plain sum over ascending k.

#include <algorithm>
#include <array>

#include "backend/reference/loops_activation.hpp"
#include "backend/reference/rows.hpp"

namespace shardmark::reference {

/// Element (row, column) of a matrix or of its transpose.
template <class T>
class Operand {
 public:
  Operand(View const& view, Transpose transpose)
      : data_(view.as<T>()),
        down_(transpose == Transpose::no ? view.stride[0] : 1),
        across_(transpose == Transpose::no ? 1 : view.stride[0]) {}
  T operator()(std::int64_t i, std::int64_t j) const { return data_[i * down_ + j * across_]; }

 private:
  T const* data_;
  std::int64_t down_, across_;
};

/// A block of c that is summed before it is stored, and the panel of b that it needs next.
template <class A>
struct MatmulTile {
  static constexpr std::int64_t rows = 32, columns = 128, depth = 64;
  std::array<std::array<A, columns>, rows> sum;
  std::array<std::array<A, columns>, depth> b;
};

/// What happens to a finished sum: accumulate, bias, gelu; then it is rounded to the type of c.
template <class T, class C, class A>
void store_row(Matmul const& o, std::int64_t i, std::int64_t from, std::int64_t to, A const* sum) {
  C* const c = row<C>(o.c, i);
  for (std::int64_t j = from; j < to; ++j) {
    A const product = sum[j - from];
    if (o.write == Write::accumulate) {
      c[j] = C(A(c[j]) + product);
    } else if (o.epilogue == Epilogue::none) {
      c[j] = C(product);
    } else {
      C const biased = C(product + A(o.bias.as<T>()[j]));
      if (o.aux) row<C>(o.aux, i)[j] = biased;
      c[j] = o.epilogue == Epilogue::bias ? biased : C(gelu(A(biased)));
    }
  }
}

/// c[M,N] = op(a) op(b) by tiles of i and j, so that b is read along rows whichever way it lies; within a tile i-k-j.
/// Tiles cut i and j only where k is kept ascending, so they don't change a bit.
template <class T, class C, class Tick>
void matmul(Matmul const& o, Tick&& tick) {
  using A = Accumulator<T>;
  using Tile = MatmulTile<A>;
  Operand<T> const a(o.a, o.ta), b(o.b, o.tb);
  std::int64_t const m = o.c.shape[0], n = o.c.shape[1], k = o.a.shape[o.ta == Transpose::no ? 1 : 0];
  Tile tile;
  for (std::int64_t i0 = 0; i0 < m; i0 += Tile::rows) {
    std::int64_t const i1 = std::min(m, i0 + Tile::rows);
    for (std::int64_t j0 = 0; j0 < n; j0 += Tile::columns) {
      std::int64_t const j1 = std::min(n, j0 + Tile::columns);
      for (auto& sums : tile.sum) sums.fill(A(0));
      for (std::int64_t k0 = 0; k0 < k; k0 += Tile::depth) {
        std::int64_t const k1 = std::min(k, k0 + Tile::depth);
        for (std::int64_t p = k0; p < k1; ++p)
          for (std::int64_t j = j0; j < j1; ++j) tile.b[std::size_t(p - k0)][std::size_t(j - j0)] = A(b(p, j));
        for (std::int64_t i = i0; i < i1; ++i) {
          A* const sum = tile.sum[std::size_t(i - i0)].data();
          for (std::int64_t p = k0; p < k1; ++p) {
            A const x = A(a(i, p));
            A const* const y = tile.b[std::size_t(p - k0)].data();
            for (std::int64_t j = 0; j < j1 - j0; ++j) sum[j] += x * y[j];
          }
        }
      }
      for (std::int64_t i = i0; i < i1; ++i) store_row<T, C>(o, i, j0, j1, tile.sum[std::size_t(i - i0)].data());
    }
    tick();
  }
}

}  // namespace shardmark::reference
