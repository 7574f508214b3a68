#pragma once
// Updates, copies and fills.

#include <algorithm>
#include <cmath>
#include <cstring>

#include "backend/cpu/run.hpp"
#include "backend/reference/loops_update.hpp"

namespace shardmark::cpu {

template <class From, class To>
void run_copy(Stream& stream, Copy const& o) {
  auto dense = [](View const& v) { return columns_of(v) <= 1 || v.stride[v.rank - 1u] == 1; };
  if (!dense(o.from) || !dense(o.to)) return reference::copy<From, To>(o);
  auto convert = [](std::int64_t n, From const* from, To* to) {
    if constexpr (std::is_same_v<From, To>)
      std::memmove(to, from, std::size_t(n) * sizeof(To));
    else
      for (std::int64_t i = 0; i < n; ++i) to[i] = To(from[i]);
  };
  if (o.from.contiguous() && o.to.contiguous())
    return each_piece(o.to.elements(), stream, [&](std::int64_t begin, std::int64_t end) {
      convert(end - begin, o.from.as<From>() + begin, o.to.as<To>() + begin);
    });
  std::int64_t const n = columns_of(o.to);
  each_row_index(rows_of(o.to), n, stream, [&](std::int64_t r) { convert(n, row<From>(o.from, r), row<To>(o.to, r)); });
}

template <class T>
void run_fill(Stream& stream, Fill const& o) {
  if (!o.to.contiguous()) return reference::fill<T>(o);
  each_piece(o.to.elements(), stream,
             [&](std::int64_t begin, std::int64_t end) { std::fill(o.to.as<T>() + begin, o.to.as<T>() + end, T(o.value)); });
}

/// f(decay, begin, end) over pieces of [0, n), cut where decay begins and ends.
template <class Update, class F>
void each_update_piece(Stream& stream, Update const& o, F&& f) {
  std::int64_t const cuts[] = {0, o.decay_from, o.decay_to, o.weight.elements()};
  for (int i = 0; i < 3; ++i)
    each_piece(cuts[i + 1] - cuts[i], stream,
               [&, from = cuts[i], decay = i == 1 ? Decay::yes : Decay::no](std::int64_t begin, std::int64_t end) {
                 f(decay, from + begin, from + end);
               });
}

/// Runs `update` unless this step is skipped: then the weights pass through. Then the copy for the next forward, when one is asked for.
template <class T, class Update, class F>
void update_or_pass(Stream& stream, Update const& o, F&& update) {
  if (reference::scalar(o.scalars, Scalar::skip) == 0)
    update();
  else
    run_copy<T, T>(stream, {o.weight, o.out});
  if (!o.compute) return;
  if (o.compute.dtype == DType::f64)
    run_copy<T, double>(stream, {o.out, o.compute});
  else
    run_copy<T, float>(stream, {o.out, o.compute});
}

template <class T>
void run(Kernels<T> const& k, Stream& stream, SgdUpdate const& o) {
  update_or_pass<T>(stream, o, [&] {
    SgdCall<T> const call{.weight = o.weight.as<T>(),
                          .gradient = o.gradient.as<T>(),
                          .momentum = o.momentum ? o.momentum.as<T>() : nullptr,
                          .out = o.out.as<T>(),
                          .clip = T(reference::scalar(o.scalars, Scalar::clip)),
                          .rate = T(reference::scalar(o.scalars, Scalar::learning_rate)),
                          .factor = T(o.factor),
                          .decay = T(o.decay),
                          .nesterov = o.nesterov};
    each_update_piece(stream, o, [&](Decay decay, std::int64_t begin, std::int64_t end) { k.sgd(call, decay, begin, end); });
  });
}

template <class T>
void run(Kernels<T> const& k, Stream& stream, AdamWUpdate const& o) {
  update_or_pass<T>(stream, o, [&] {
    double const rate = reference::scalar(o.scalars, Scalar::learning_rate), update = reference::scalar(o.scalars, Scalar::update);
    AdamWCall<T> const call{.weight = o.weight.as<T>(),
                            .gradient = o.gradient.as<T>(),
                            .first = o.first.as<T>(),
                            .second = o.second.as<T>(),
                            .out = o.out.as<T>(),
                            .clip = T(reference::scalar(o.scalars, Scalar::clip)),
                            .beta1 = T(o.beta1),
                            .rest1 = T(1 - o.beta1),
                            .beta2 = T(o.beta2),
                            .rest2 = T(1 - o.beta2),
                            .shrink = T(1 - rate * o.decay),
                            .step = T(rate / (1 - std::pow(o.beta1, update))),
                            .root_correction = T(1 / std::sqrt(1 - std::pow(o.beta2, update))),
                            .epsilon = T(o.epsilon)};
    each_update_piece(stream, o, [&](Decay decay, std::int64_t begin, std::int64_t end) { k.adamw(call, decay, begin, end); });
  });
}

}  // namespace shardmark::cpu
