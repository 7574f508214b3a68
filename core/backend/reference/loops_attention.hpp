#pragma once
// Causal attention, one query at a time: a row of scores, its softmax, the weighted values (Vaswani et al. 2017).

#include <algorithm>
#include <cmath>
#include <span>

#include "backend/reference/rows.hpp"

namespace shardmark::reference {

/// Row (batch, position, head) of a [B,S,heads,d] view.
template <class T>
T* head_row(View const& v, std::int64_t b, std::int64_t s, std::int64_t h) {
  return v.as<T>() + b * v.stride[0] + s * v.stride[1] + h * v.stride[2];
}

template <class T>
Accumulator<T> dot(T const* x, T const* y, std::int64_t n) {
  Accumulator<T> sum = 0;
  for (std::int64_t i = 0; i < n; ++i) sum += Accumulator<T>(x[i]) * Accumulator<T>(y[i]);
  return sum;
}

/// sum[i] += factor x[i]
template <class T>
void add_scaled(Accumulator<T>* sum, Accumulator<T> factor, T const* x, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) sum[i] += factor * Accumulator<T>(x[i]);
}

template <class T>
void round_to(T* out, Accumulator<T> const* in, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) out[i] = T(in[i]);
}

/// Elements of scratch that the forward needs: a row of scores and a row of values.
inline std::int64_t attention_scratch(View const& q) { return q.shape[1] + q.shape[3]; }

template <class T>
void attention(Attention const& o, std::span<Accumulator<T>> scratch) {
  using A = Accumulator<T>;
  std::int64_t const batch = o.q.shape[0], length = o.q.shape[1], heads = o.q.shape[2], d = o.q.shape[3];
  A const scale = A(o.scale);
  A* const p = scratch.data();
  A* const y = p + length;
  for (std::int64_t b = 0; b < batch; ++b)
    for (std::int64_t h = 0; h < heads; ++h)
      for (std::int64_t i = 0; i < length; ++i) {
        T const* const q = head_row<T>(o.q, b, i, h);
        for (std::int64_t j = 0; j <= i; ++j) p[j] = scale * dot(q, head_row<T>(o.k, b, j, h), d);
        A const highest = *std::max_element(p, p + i + 1);
        A sum = 0;
        for (std::int64_t j = 0; j <= i; ++j) sum += p[j] = std::exp(p[j] - highest);
        std::fill_n(y, d, A(0));
        for (std::int64_t j = 0; j <= i; ++j) add_scaled(y, p[j] / sum, head_row<T>(o.v, b, j, h), d);
        round_to(head_row<T>(o.y, b, i, h), y, d);
        o.lse.as<A>()[(b * heads + h) * length + i] = highest + std::log(sum);
      }
}

/// Elements of scratch that the backward needs: dk and dv of one head, a row of dq.
inline std::int64_t attention_input_scratch(View const& q) { return (2 * q.shape[1] + 1) * q.shape[3]; }

/// p_ij = exp(scale q_i k_j - lse_i); dv_j = sum_i p_ij dy_i; ds_ij = p_ij (dy_i v_j - dy_i y_i);
/// dq_i = scale sum_j ds_ij k_j; dk_j = scale sum_i ds_ij q_i.
template <class T>
void attention_input(AttentionInput const& o, std::span<Accumulator<T>> scratch) {
  using A = Accumulator<T>;
  std::int64_t const batch = o.q.shape[0], length = o.q.shape[1], heads = o.q.shape[2], d = o.q.shape[3];
  A const scale = A(o.scale);
  A* const dk = scratch.data();
  A* const dv = dk + length * d;
  A* const dq = dv + length * d;
  for (std::int64_t b = 0; b < batch; ++b)
    for (std::int64_t h = 0; h < heads; ++h) {
      std::fill(scratch.begin(), scratch.end(), A(0));
      for (std::int64_t i = 0; i < length; ++i) {
        T const* const q = head_row<T>(o.q, b, i, h);
        T const* const dy = head_row<T>(o.dy, b, i, h);
        A const lse = o.lse.as<A>()[(b * heads + h) * length + i];
        A const inner = dot(dy, static_cast<T const*>(head_row<T>(o.y, b, i, h)), d);
        std::fill_n(dq, d, A(0));
        for (std::int64_t j = 0; j <= i; ++j) {
          T const* const k = head_row<T>(o.k, b, j, h);
          T const* const v = head_row<T>(o.v, b, j, h);
          A const p = std::exp(scale * dot(q, k, d) - lse);
          A const ds = p * (dot(dy, v, d) - inner) * scale;
          add_scaled(dv + j * d, p, dy, d);
          add_scaled(dk + j * d, ds, q, d);
          add_scaled(dq, ds, k, d);
        }
        round_to(head_row<T>(o.dq, b, i, h), dq, d);
      }
      for (std::int64_t j = 0; j < length; ++j) {
        round_to(head_row<T>(o.dk, b, j, h), dk + j * d, d);
        round_to(head_row<T>(o.dv, b, j, h), dv + j * d, d);
      }
    }
}

}  // namespace shardmark::reference
