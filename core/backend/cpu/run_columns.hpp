#pragma once
// Sums over rows: bias and normalisation gradients, and the tables of an embedding.
//
// Column sums go in blocks of 64 rows by the logical row index, and the blocks' sums are added in ascending order: fewer roundings in a
// row than one long sum, and bits that don't depend on how columns are cut.

#include <algorithm>
#include <array>

#include "backend/cpu/run.hpp"
#include "backend/reference/loops_embedding.hpp"

namespace shardmark::cpu {

/// Sums of `outputs` kinds over columns that fit the first-level cache together.
template <class T, std::size_t outputs>
struct ColumnBlocks {
  using Sum = Accumulator<T>;
  static constexpr std::int64_t rows_in_block = 64;
  static constexpr std::int64_t most_columns = 1024;
  using Sums = std::array<std::array<Sum, most_columns>, outputs>;
  Sums total, block;

  /// add(row, from, columns, block) adds columns [from, from + columns) of one row; the totals go to `out` at the end.
  template <class AddRow>
  void run(Kernels<T> const& k, Stream& stream, std::int64_t rows, std::int64_t columns, std::array<Sum*, outputs> out, Write write,
           AddRow&& add) {
    for (std::int64_t from = 0; from < columns; from += most_columns) {
      std::int64_t const n = std::min(most_columns, columns - from);
      clear(total, n);
      for (std::int64_t r = 0; r < rows; r += rows_in_block) {
        clear(block, n);
        for (std::int64_t i = r; i < std::min(rows, r + rows_in_block); ++i) add(i, from, n, block);
        for (std::size_t o = 0; o < outputs; ++o) k.add_sums(block[o].data(), total[o].data(), n);
        stream.tick();
      }
      for (std::size_t o = 0; o < outputs; ++o) {
        if (write == Write::overwrite)
          std::copy_n(total[o].data(), n, out[o] + from);
        else
          k.add_sums(total[o].data(), out[o] + from, n);
      }
    }
  }

 private:
  static void clear(Sums& sums, std::int64_t n) {
    for (auto& sum : sums) std::fill_n(sum.data(), n, Sum(0));
  }
};

template <class T>
void run(Kernels<T> const& k, Stream& stream, ColumnSum const& o) {
  ColumnBlocks<T, 1> sums;
  sums.run(k, stream, rows_of(o.x), columns_of(o.x), {o.y.as<Accumulator<T>>()}, o.write,
           [&](std::int64_t r, std::int64_t from, std::int64_t n, auto& block) { k.add(row<T>(o.x, r) + from, block[0].data(), n); });
}

template <class T>
void run(Kernels<T> const& k, Stream& stream, LayerNormWeight const& o) {
  using Sum = Accumulator<T>;
  Sum const* const mean = o.mean.as<Sum>();
  Sum const* const rstd = o.rstd.as<Sum>();
  ColumnBlocks<T, 2> sums;
  sums.run(k, stream, rows_of(o.x), columns_of(o.x), {o.dgamma.as<Sum>(), o.dbeta.as<Sum>()}, o.write,
           [&](std::int64_t r, std::int64_t from, std::int64_t n, auto& block) {
             k.layer_norm_weight(row<T>(o.dy, r) + from, row<T>(o.x, r) + from, mean[r], rstd[r], block[0].data(), block[1].data(), n);
           });
}

template <class T>
void run(Kernels<T> const& k, Stream& stream, Embedding const& o) {
  std::int64_t const n = columns_of(o.y), length = o.ids.shape[1];
  each_row_index(rows_of(o.y), n, stream, [&](std::int64_t t) {
    std::int64_t const at = reference::token(o.ids, t, o.table.shape[0], o.slice);
    if (at < 0) return void(std::fill_n(row<T>(o.y, t), n, T(0)));
    T const* const from = row<T>(o.table, at);
    if (o.positions)
      k.sum_of_two(from, row<T>(o.positions, t % length), row<T>(o.y, t), n);
    else
      std::copy_n(from, n, row<T>(o.y, t));
  });
}

template <class T>
void clear_rows(Stream& stream, View const& matrix) {
  std::int64_t const n = columns_of(matrix);
  each_row_index(rows_of(matrix), n, stream, [&](std::int64_t r) { std::fill_n(row<T>(matrix, r), n, T(0)); });
}

template <class T>
void run(Kernels<T> const& k, Stream& stream, EmbeddingWeight const& o) {
  std::int64_t const n = columns_of(o.dy);
  if (o.write == Write::overwrite) clear_rows<Accumulator<T>>(stream, o.dtable);
  each_row_index(rows_of(o.dy), n, stream, [&](std::int64_t t) {
    std::int64_t const at = reference::token(o.ids, t, o.dtable.shape[0], o.slice);
    if (at >= 0) k.add(row<T>(o.dy, t), row<Accumulator<T>>(o.dtable, at), n);
  });
}

template <class T>
void run(Kernels<T> const& k, Stream& stream, PositionWeight const& o) {
  std::int64_t const n = columns_of(o.dy), length = o.dy.shape[1];
  if (o.write == Write::overwrite) clear_rows<Accumulator<T>>(stream, o.dpositions);
  each_row_index(rows_of(o.dy), n, stream,
                 [&](std::int64_t t) { k.add(row<T>(o.dy, t), row<Accumulator<T>>(o.dpositions, t % length), n); });
}

}  // namespace shardmark::cpu
