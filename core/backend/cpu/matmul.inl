#pragma once
// The deterministic matmul: blocked and packed as in BLIS (Van Zee and van de Geijn, TOMS 2015).
//
//            K panels        one panel of K:   c block += a block x b block, micro-tile by micro-tile
//   c (+)=  a0 a1 a2   x b0                     |<- tile_rows x 2 vectors of c stay in registers ->|
//                        b1
//                        b2
//
// The order of every sum depends on K alone, whatever M and N are and wherever they are split:
//   p = panels of K, each of ceil(K / p) rounded up to 16;
//   t_i = fma(a[k], b[k], t_i) for k ascending in panel i, from +0;
//   c = t_0 (overwrite) or c + t_0 (accumulate); then c = c + t_1; c = c + t_2; ...
// Edges run the same instructions under masks or with fewer rows. A c that is narrower than its sums is rounded once: the panels' sums
// are added in a block of scratch, then (accumulate) to c.

#include <type_traits>
#include <utility>

#include "backend/cpu/kernels.hpp"
#include "backend/cpu/pack.inl"
#include "backend/cpu/vec_math.hpp"

namespace shardmark::cpu {
namespace {

/// Calls stream.tick() about four times a millisecond, so that communication advances under long kernels.
template <class V>
class Ticker {
 public:
  explicit Ticker(Stream& stream) : stream_(stream) {}
  void work(std::int64_t multiply_adds) {
    done_ += multiply_adds;
    if (done_ < limit) return;
    done_ = 0;
    stream_.tick();
  }

 private:
  static constexpr std::int64_t limit = std::int64_t(V::lanes) << 18;
  Stream& stream_;
  std::int64_t done_ = 0;
};

/// Columns of one micro-tile: two vectors.
template <class V>
constexpr int tile_columns = 2 * V::lanes;

template <class V, int rows>
void micro_tile(std::int64_t k, typename V::Scalar const* a, typename V::Scalar const* b, typename V::Scalar* c, std::int64_t ldc,
                std::int64_t columns, Write write) {
  V sum[rows][2];
#pragma GCC unroll 16
  for (int i = 0; i < rows; ++i) sum[i][0] = sum[i][1] = V::set(0);
  auto add_products = [&](std::int64_t steps) {
    for (k -= steps; steps > 0; --steps, a += rows, b += tile_columns<V>) {
      V const left = V::load(b), right = V::load(b + V::lanes);
#pragma GCC unroll 16
      for (int i = 0; i < rows; ++i) {
        V const x = V::set(a[i]);
        sum[i][0] = fma(x, left, sum[i][0]);
        sum[i][1] = fma(x, right, sum[i][1]);
      }
    }
  };
  // c is called for a row at a time: all rows at once would hold up the loads of a, most of all where ldc is a power of two.
  for (int i = 0; i < rows; ++i) {
    __builtin_prefetch(c + i * ldc, 1);
    __builtin_prefetch(c + i * ldc + columns - 1, 1);
    add_products(smaller<std::int64_t>(k, 8));
  }
  add_products(k);
  auto put = [&](auto part_left, auto part_right) {
#pragma GCC unroll 16
    for (int i = 0; i < rows; ++i) {
      auto* const at = c + i * ldc;
      if (write == Write::accumulate) {
        sum[i][0] = V::load(at, part_left) + sum[i][0];
        sum[i][1] = V::load(at + V::lanes, part_right) + sum[i][1];
      }
      sum[i][0].store(at, part_left);
      sum[i][1].store(at + V::lanes, part_right);
    }
  };
  if (columns == tile_columns<V>)
    put(All{}, All{});
  else if (columns > V::lanes)
    put(All{}, Some{columns - V::lanes});
  else
    put(Some{columns}, Some{0});
}

template <class V>
using MicroTile = void (*)(std::int64_t, typename V::Scalar const*, typename V::Scalar const*, typename V::Scalar*, std::int64_t,
                           std::int64_t, Write);
/// What differs between heights of a panel of a.
template <class V, class A>
struct Panel {
  MicroTile<V> multiply;
  void (*pack_rows)(A const*, std::int64_t, std::int64_t, std::int64_t, typename V::Scalar*);
  void (*pack_columns)(A const*, std::int64_t, std::int64_t, std::int64_t, typename V::Scalar*);
};
template <class V, class A, int... rows>
constexpr Panel<V, A> panel_of(std::int64_t height, std::integer_sequence<int, rows...>) {
  constexpr Panel<V, A> table[] = {{micro_tile<V, rows + 1>, pack_rows<V, rows + 1, A>, pack_columns<V, rows + 1, A>}...};
  return table[height - 1];
}

/// [0, n) in equal pieces of at most `most`, all but the last a multiple of `unit`.
constexpr std::int64_t even_piece(std::int64_t n, std::int64_t most, std::int64_t unit) {
  std::int64_t const pieces = ceil_div(n, most);
  return ceil_div(ceil_div(n, pieces), unit) * unit;
}

/// A rows x columns piece of c, and the finished sums that become it: c itself, or a block of scratch.
template <class Sum>
struct Piece {
  std::int64_t row, rows, column, columns;
  Sum const* sums;
  std::int64_t stride;
};

/// Bias and gelu on finished sums, and their way into a narrower c.
template <class V, class A, class B, class C>
void finish_block(MatmulCall<A, B, C> const& g, Piece<typename V::Scalar> const& piece) {
  constexpr bool narrow = !std::is_same_v<C, typename V::Scalar>;
  if (!narrow && g.epilogue == Epilogue::none) return;
  for (std::int64_t i = 0; i < piece.rows; ++i) {
    C* const c = g.c + (piece.row + i) * g.ldc + piece.column;
    C* const biased = g.aux != nullptr ? g.aux + (piece.row + i) * g.ldaux + piece.column : c;
    auto const* const sums = piece.sums + i * piece.stride;
    each_vector<V>(piece.columns, [&](std::int64_t j, auto part) {
      V x = V::load(sums + j, part);
      if (narrow && g.write == Write::accumulate) x = V::load(c + j, part) + x;
      if (g.epilogue != Epilogue::none) x = x + V::load(g.bias + piece.column + j, part);
      x.store(biased + j, part);
      if (g.epilogue == Epilogue::bias_gelu) gelu(V::load(biased + j, part)).store(c + j, part);  // of the rounded value
    });
  }
}
template <class V>
void epilogue_rows(MatmulCall<typename V::Scalar> const& g, std::int64_t begin, std::int64_t end) {
  finish_block<V>(g, {begin, end - begin, 0, g.n, g.c + begin * g.ldc, g.ldc});
}

template <class V, class A, class B, class C>
struct Matmul {
  using T = typename V::Scalar;
  static constexpr bool narrow = !std::is_same_v<C, T>;
  static constexpr std::int64_t width = tile_columns<V>;
  static constexpr std::int64_t most_rows = block_a_bytes / std::int64_t(block_k * sizeof(T));
  static constexpr std::int64_t most_columns = block_b_bytes / std::int64_t(block_k * sizeof(T));
  static_assert(!narrow || most_rows * most_columns * std::int64_t(sizeof(T)) <= block_c_bytes);

  MatmulCall<A, B, C> const& g;
  Scratch const& scratch;
  Ticker<V> ticker;

  void pack_b(std::int64_t k0, std::int64_t k, std::int64_t n0, std::int64_t n) {
    T* out = scratch.block_b<T>();
    for (std::int64_t j = 0; j < n; j += width, out += width * k) {
      std::int64_t const columns = smaller(width, n - j);
      if (g.tb == Transpose::no)
        pack_rows<V, int(width)>(g.b + k0 * g.ldb + n0 + j, g.ldb, k, columns, out);
      else
        pack_columns<V, int(width)>(g.b + (n0 + j) * g.ldb + k0, g.ldb, k, columns, out);
      ticker.work(columns * k * 8);
    }
  }
  void pack_a(std::int64_t m0, std::int64_t m, std::int64_t k0, std::int64_t k, std::int64_t height) {
    T* out = packed_a(m0, m, k0);
    for (std::int64_t i = 0; i < m; i += height, out += height * k) {
      std::int64_t const rows = smaller(height, m - i);
      Panel<V, A> const panel = panel_at(rows);
      if (g.ta == Transpose::no)
        panel.pack_columns(g.a + (m0 + i) * g.lda + k0, g.lda, k, rows, out);
      else
        panel.pack_rows(g.a + k0 * g.lda + m0 + i, g.lda, k, rows, out);
    }
    ticker.work(m * k * 8);
  }
  /// One block of c; `last`: the sum over K is complete, so the epilogue follows while the strip is in the cache.
  void multiply_block(T const* a, std::int64_t m0, std::int64_t m, std::int64_t n0, std::int64_t n, std::int64_t k, std::int64_t height,
                      Write write, bool last) {
    T* const sums = sums_at(m0, n0);
    std::int64_t const stride = narrow ? n : g.ldc;
    for (std::int64_t j = 0; j < n; j += width) {
      std::int64_t const columns = smaller(width, n - j);
      T const* const b = scratch.block_b<T>() + j * k;
      for (std::int64_t i = 0; i < m; i += height)
        panel_at(smaller(height, m - i)).multiply(k, a + i * k, b, sums + i * stride + j, stride, columns, write);
      if (last) finish_block<V>(g, {m0, m, n0 + j, columns, sums + j, stride});
      ticker.work(m * columns * k);
    }
  }
  void run() {
    if (g.k == 0) return without_terms();
    if (g.m == 0 || g.n == 0) return;
    std::int64_t const kp = even_piece(g.k, block_k, 16), np = even_piece(g.n, most_columns, width);
    std::int64_t const height = ceil_div(g.m, ceil_div(g.m, V::tile_rows)), mp = even_piece(g.m, most_rows / height * height, height);
    // Sums that stay in scratch until they are complete need all of K for one block of rows: then b is packed once for each of those.
    std::int64_t const rows_at_once = narrow ? mp : g.m;
    Write const first = narrow ? Write::overwrite : g.write;
    for (std::int64_t n0 = 0; n0 < g.n; n0 += np)
      for (std::int64_t from = 0; from < g.m; from += rows_at_once)
        for (std::int64_t k0 = 0; k0 < g.k; k0 += kp) {
          std::int64_t const n = smaller(np, g.n - n0), k = smaller(kp, g.k - k0), to = smaller(g.m, from + rows_at_once);
          pack_b(k0, k, n0, n);
          for (std::int64_t m0 = from; m0 < to; m0 += mp) {
            std::int64_t const m = smaller(mp, to - m0);
            if (n0 == 0 || !keeps_a()) pack_a(m0, m, k0, k, height);
            multiply_block(packed_a(m0, m, k0), m0, m, n0, n, k, height, k0 == 0 ? first : Write::accumulate, k0 + k == g.k);
          }
        }
  }

 private:
  static Panel<V, A> panel_at(std::int64_t rows) { return panel_of<V, A>(rows, std::make_integer_sequence<int, V::tile_rows>{}); }
  /// Whether all of a is packed once and kept, since several blocks of columns need it and it has room.
  bool keeps_a() const { return g.n > most_columns && g.m * g.k * std::int64_t(sizeof(T)) <= packed_a_bytes; }
  T* packed_a(std::int64_t m0, std::int64_t m, std::int64_t k0) const {
    return scratch.packed_a<T>() + (keeps_a() ? m0 * g.k + m * k0 : 0);
  }
  T* sums_at(std::int64_t m0, std::int64_t n0) const {
    if constexpr (narrow)
      return scratch.block_c<T>();
    else
      return g.c + m0 * g.ldc + n0;
  }
  void without_terms() {
    V const zero = V::set(0);
    for (std::int64_t i = 0; i < g.m; ++i)
      each_vector<V>(g.n, [&](std::int64_t j, auto part) {
        C* const c = g.c + i * g.ldc + j;
        if (g.write == Write::overwrite) zero.store(c, part);
        if (g.epilogue == Epilogue::none) return;
        C* const biased = g.aux != nullptr ? g.aux + i * g.ldaux + j : c;
        V::load(g.bias + j, part).store(biased, part);
        if (g.epilogue == Epilogue::bias_gelu) gelu(V::load(biased, part)).store(c, part);
      });
  }
};

template <class V, class A, class B, class C>
void matmul(MatmulCall<A, B, C> const& g, Scratch const& scratch, Stream& stream) {
  Matmul<V, A, B, C>{g, scratch, Ticker<V>{stream}}.run();
}

}  // namespace
}  // namespace shardmark::cpu
