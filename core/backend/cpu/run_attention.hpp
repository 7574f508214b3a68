#pragma once
// Attention: one call of a kernel for each head of each sample.

#include "backend/cpu/run.hpp"

namespace shardmark::cpu {

/// Rows of one head of a [B,S,heads,d] view.
template <class T>
Rows<T> head(View const& view, std::int64_t b, std::int64_t h) {
  using Element = std::remove_const_t<T>;
  return {view.as<Element>() + b * view.stride[0] + h * view.stride[2], view.stride[1]};
}

/// f(batch, head, first element of the head's lse)
template <class F>
void each_head(View const& q, F&& f) {
  std::int64_t const heads = q.shape[2];
  for (std::int64_t b = 0; b < q.shape[0]; ++b)
    for (std::int64_t h = 0; h < heads; ++h) f(b, h, (b * heads + h) * q.shape[1]);
}

/// Room for `heads_of_sums` times the sums of one head, where T can't hold them.
template <class T>
Accumulator<T>* room_for_sums(View const& q, int heads_of_sums) {
  if constexpr (std::is_same_v<T, Accumulator<T>>)
    return nullptr;
  else
    return scratch_of_thread().template sums<Accumulator<T>>(heads_of_sums * q.shape[1] * q.shape[3]);
}

template <class T>
void run(Kernels<T> const& k, Stream& stream, Attention const& o) {
  Accumulator<T>* const sums = room_for_sums<T>(o.q, 1);
  each_head(o.q, [&](std::int64_t b, std::int64_t h, std::int64_t at) {
    k.attention({.q = head<T const>(o.q, b, h),
                 .k = head<T const>(o.k, b, h),
                 .v = head<T const>(o.v, b, h),
                 .y = head<T>(o.y, b, h),
                 .lse = o.lse.as<Accumulator<T>>() + at,
                 .length = o.q.shape[1],
                 .width = o.q.shape[3],
                 .scale = o.scale,
                 .sums = sums},
                scratch_of_thread(), stream);
  });
}

template <class T>
void run(Kernels<T> const& k, Stream& stream, AttentionInput const& o) {
  Accumulator<T>* const sums = room_for_sums<T>(o.q, 3);
  each_head(o.q, [&](std::int64_t b, std::int64_t h, std::int64_t at) {
    k.attention_input({.q = head<T const>(o.q, b, h),
                       .k = head<T const>(o.k, b, h),
                       .v = head<T const>(o.v, b, h),
                       .y = head<T const>(o.y, b, h),
                       .dy = head<T const>(o.dy, b, h),
                       .lse = o.lse.as<Accumulator<T>>() + at,
                       .dq = head<T>(o.dq, b, h),
                       .dk = head<T>(o.dk, b, h),
                       .dv = head<T>(o.dv, b, h),
                       .length = o.q.shape[1],
                       .width = o.q.shape[3],
                       .scale = o.scale,
                       .sums = sums},
                      scratch_of_thread(), stream);
  });
}

}  // namespace shardmark::cpu
