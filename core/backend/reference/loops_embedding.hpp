#pragma once
// Token and position tables.

#include "backend/reference/rows.hpp"

namespace shardmark::reference {

/// Row of token `t` in a table of `rows` rows; -1: another slice of the table has it.
inline std::int64_t token(View const& ids, std::int64_t t, std::int64_t rows, TableSlice const& slice) {
  std::int64_t const id = ids.as<std::int32_t>()[t];
  expect(id >= 0 && id < (slice.vocabulary == 0 ? rows : slice.vocabulary), "embedding: a token id lies outside the vocabulary");
  std::int64_t const row = id - slice.first;
  return row < 0 || row >= rows ? -1 : row;
}

template <class T>
void embedding(Embedding const& o) {
  using A = Accumulator<T>;
  std::int64_t const length = o.ids.shape[1], width = o.table.shape[1], tokens = rows_of(o.y);
  for (std::int64_t t = 0; t < tokens; ++t) {
    std::int64_t const at = token(o.ids, t, o.table.shape[0], o.slice);
    T* const y = row<T>(o.y, t);
    if (at < 0) {
      for (std::int64_t j = 0; j < width; ++j) y[j] = T(0);
      continue;
    }
    T const* const from = row<T>(o.table, at);
    if (!o.positions) {
      for (std::int64_t j = 0; j < width; ++j) y[j] = from[j];
    } else {
      T const* const position = row<T>(o.positions, t % length);
      for (std::int64_t j = 0; j < width; ++j) y[j] = T(A(from[j]) + A(position[j]));
    }
  }
}

template <class A>
void clear_rows(View const& matrix, std::int64_t from) {
  for (std::int64_t r = from; r < matrix.shape[0]; ++r)
    for (std::int64_t j = 0; j < matrix.shape[1]; ++j) row<A>(matrix, r)[j] = A(0);
}

template <class T>
void add_row(Accumulator<T>* sum, T const* x, std::int64_t n) {
  for (std::int64_t j = 0; j < n; ++j) sum[j] += Accumulator<T>(x[j]);
}

template <class T>
void embedding_weight(EmbeddingWeight const& o) {
  using A = Accumulator<T>;
  std::int64_t const tokens = rows_of(o.dy);
  if (o.write == Write::overwrite) clear_rows<A>(o.dtable, 0);
  for (std::int64_t t = 0; t < tokens; ++t)
    if (std::int64_t const at = token(o.ids, t, o.dtable.shape[0], o.slice); at >= 0)
      add_row<T>(row<A>(o.dtable, at), row<T>(o.dy, t), o.dtable.shape[1]);
}

template <class T>
void position_weight(PositionWeight const& o) {
  using A = Accumulator<T>;
  std::int64_t const batch = o.dy.shape[0], length = o.dy.shape[1];
  if (o.write == Write::overwrite) clear_rows<A>(o.dpositions, 0);
  for (std::int64_t b = 0; b < batch; ++b)
    for (std::int64_t s = 0; s < length; ++s) add_row<T>(row<A>(o.dpositions, s), row<T>(o.dy, b * length + s), o.dy.shape[2]);
}

}  // namespace shardmark::reference
