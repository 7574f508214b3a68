#pragma once
// Causal attention in tiles of 64 queries x 64 keys, with a running maximum (Milakov and Gimelshein 2018; Dao et al. 2022).
//
//            keys ->                     forward: for each block of queries, over its tiles left to right
//   queries  a                           backward: for each block of keys, over its tiles top to bottom
//      |     b c
//      v     d e f     (only the lower triangle is ever computed)
//
// dq of a block gets its terms by ascending block of keys; dk and dv theirs by ascending block of queries.

#include <cmath>
#include <limits>
#include <type_traits>

#include "backend/cpu/matmul.inl"
#include "backend/cpu/rows.inl"

namespace shardmark::cpu {
namespace {

/// V computes, E is stored. Tiles and sums have the type of V; where E is narrower, a head's sums are rounded once they are complete.
template <class V, class E>
struct Attend {
  using T = typename V::Scalar;
  static constexpr bool narrow = !std::is_same_v<E, T>;
  static constexpr std::int64_t block = attention_tile;

  Scratch const& scratch;
  Stream& stream;
  std::int64_t length, width;
  T factor;  // of the scores

  std::int64_t size(std::int64_t from) const { return smaller(block, length - from); }
  /// Where the sums of rows `out` grow: there, or in the call's room for sums.
  Rows<T> sums_of(Rows<E> out, T* room) const {
    if constexpr (narrow)
      return {room, width};
    else
      return out;
  }
  /// The finished sums of `rows` rows, rounded into `out`.
  void round_rows(Rows<T> sums, Rows<E> out, std::int64_t from, std::int64_t rows) const {
    if constexpr (narrow)
      for (std::int64_t i = from; i < from + rows; ++i) {
        T const* const x = sums.at + i * sums.stride;
        E* const y = out.at + i * out.stride;
        each_vector<V>(width, [=](std::int64_t j, auto part) { V::load(x + j, part).store(y + j, part); });
      }
  }
  /// tile = x[from_x...] y[from_y...]^T.
  void products(Rows<E const> x, std::int64_t from_x, Rows<E const> y, std::int64_t from_y, T* tile) const {
    matmul<V, E, E, T>({.a = x.at + from_x * x.stride,
                        .b = y.at + from_y * y.stride,
                        .c = tile,
                        .lda = x.stride,
                        .ldb = y.stride,
                        .ldc = block,
                        .m = size(from_x),
                        .n = size(from_y),
                        .k = width,
                        .tb = Transpose::yes},
                       scratch, stream);
  }
  /// out[to...] (+)= op(tile) x[from...].
  void weigh(T const* tile, Transpose transpose, Rows<E const> x, std::int64_t from, Rows<T> out, std::int64_t to, Write write) const {
    matmul<V, T, E, T>({.a = tile,
                        .b = x.at + from * x.stride,
                        .c = out.at + to * out.stride,
                        .lda = block,
                        .ldb = x.stride,
                        .ldc = out.stride,
                        .m = size(to),
                        .n = width,
                        .k = size(from),
                        .ta = transpose,
                        .write = write},
                       scratch, stream);
  }
  /// Keys of the block at `key` that query i may see.
  std::int64_t visible(std::int64_t i, std::int64_t key) const { return smaller(size(key), i - key + 1); }
};

template <class V, class E>
struct AttendForward : Attend<V, E> {
  using Base = Attend<V, E>;
  using T = typename V::Scalar;
  using Base::block;
  T highest[block], sum[block];

  /// Scores of one query become e^(score - highest so far); what was summed before is scaled to the new maximum.
  void soften(T* score, std::int64_t row, std::int64_t seen, std::int64_t keys, T* y) {
    T const before = highest[row], now = larger(before, T(this->factor * largest_in_row<V>(score, seen)));
    V const scale = V::set(this->factor), shift = V::set(-now);
    T const terms = sum_vectors<V>(seen, [=](std::int64_t j, auto part) {
      V const p = V::merge(part, exp(fma(V::load(score + j, part), scale, shift)), V::set(0));
      p.store(score + j, part);
      return p;
    });
    for (std::int64_t j = seen; j < keys; ++j) score[j] = 0;
    highest[row] = now;
    if (before == now || y == nullptr) {
      sum[row] += terms;
      return;
    }
    T shrink[V::lanes];
    exp(V::set(before - now)).store(shrink);
    sum[row] = sum[row] * shrink[0] + terms;
    multiply_row(y, shrink[0]);
  }
  void multiply_row(T* y, T by) const {
    each_vector<V>(this->width, [=](std::int64_t j, auto part) { (V::load(y + j, part) * V::set(by)).store(y + j, part); });
  }

  void run(AttentionCall<E> const& call) {
    Rows<T> const y = this->sums_of(call.y, call.sums);
    T* const tile = this->scratch.template tile<T>(0);
    for (std::int64_t query = 0; query < this->length; query += block) {
      std::int64_t const queries = this->size(query);
      for (std::int64_t i = 0; i < queries; ++i) highest[i] = -std::numeric_limits<T>::infinity(), sum[i] = 0;
      for (std::int64_t key = 0; key <= query; key += block) {
        this->products(call.q, query, call.k, key, tile);
        for (std::int64_t i = 0; i < queries; ++i)
          soften(tile + i * block, i, this->visible(query + i, key), this->size(key), key == 0 ? nullptr : y.at + (query + i) * y.stride);
        this->weigh(tile, Transpose::no, call.v, key, y, query, key == 0 ? Write::overwrite : Write::accumulate);
        this->stream.tick();
      }
      for (std::int64_t i = 0; i < queries; ++i) {
        multiply_row(y.at + (query + i) * y.stride, 1 / sum[i]);
        call.lse[query + i] = highest[i] + std::log(sum[i]);
      }
      this->round_rows(y, call.y, query, queries);
    }
  }
};

template <class V, class E>
void attention(AttentionCall<E> const& call, Scratch const& scratch, Stream& stream) {
  AttendForward<V, E>{{scratch, stream, call.length, call.width, typename V::Scalar(call.scale)}, {}, {}}.run(call);
}

template <class V, class E>
struct AttendBackward : Attend<V, E> {
  using Base = Attend<V, E>;
  using T = typename V::Scalar;
  using Base::block;

  /// Of one query: scores -> p = e^(score - lse), and dp -> ds = scale p (dp - y dy). Keys that it can't see get 0.
  void differentiate(T* score, T* dp, T lse, T inner, std::int64_t seen, std::int64_t keys) const {
    V const scale = V::set(this->factor);
    each_vector<V>(seen, [=](std::int64_t j, auto part) {
      V const p = exp(fma(V::load(score + j, part), scale, V::set(-lse)));
      p.store(score + j, part);
      (p * (V::load(dp + j, part) - V::set(inner)) * scale).store(dp + j, part);
    });
    for (std::int64_t j = seen; j < keys; ++j) score[j] = dp[j] = 0;
  }
  T dot(E const* x, E const* y) const {
    return sum_vectors<V>(this->width, [=](std::int64_t j, auto part) { return V::load(x + j, part) * V::load(y + j, part); });
  }

  void run(AttentionInputCall<E> const& call) const {
    std::int64_t const elements = this->length * this->width;
    Rows<T> const dq = this->sums_of(call.dq, call.sums), dk = this->sums_of(call.dk, call.sums + elements),
                  dv = this->sums_of(call.dv, call.sums + 2 * elements);
    T* const p = this->scratch.template tile<T>(0);
    T* const ds = this->scratch.template tile<T>(1);
    for (std::int64_t key = 0; key < this->length; key += block)
      for (std::int64_t query = key; query < this->length; query += block) {
        this->products(call.q, query, call.k, key, p);
        this->products(call.dy, query, call.v, key, ds);
        for (std::int64_t i = 0; i < this->size(query); ++i) {
          std::int64_t const row = query + i;
          T const inner = dot(call.dy.at + row * call.dy.stride, call.y.at + row * call.y.stride);
          differentiate(p + i * block, ds + i * block, call.lse[row], inner, this->visible(row, key), this->size(key));
        }
        Write const first_query = query == key ? Write::overwrite : Write::accumulate;
        this->weigh(p, Transpose::yes, call.dy, query, dv, key, first_query);
        this->weigh(ds, Transpose::yes, call.q, query, dk, key, first_query);
        this->weigh(ds, Transpose::no, call.k, key, dq, query, key == 0 ? Write::overwrite : Write::accumulate);
        this->stream.tick();
      }
    this->round_rows(dq, call.dq, 0, this->length);
    this->round_rows(dk, call.dk, 0, this->length);
    this->round_rows(dv, call.dv, 0, this->length);
  }
};

template <class V, class E>
void attention_input(AttentionInputCall<E> const& call, Scratch const& scratch, Stream& stream) {
  AttendBackward<V, E>{{scratch, stream, call.length, call.width, typename V::Scalar(call.scale)}}.run(call);
}

}  // namespace
}  // namespace shardmark::cpu
