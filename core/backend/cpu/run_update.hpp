#pragma once
// Updates, copies and fills.

#include <algorithm>
#include <cmath>
#include <cstring>

#include "backend/cpu/run.hpp"
#include "backend/reference/loops_update.hpp"

namespace shardmark::cpu {

/// n elements, cast.
template <class From, class To>
void convert(InstructionSet const& set, From const* from, To* to, std::int64_t n) {
  if constexpr (std::is_same_v<From, To>)
    std::memmove(to, from, std::size_t(n) * sizeof(To));
  else if constexpr (std::is_same_v<From, float> && std::is_same_v<To, bfloat16>)
    set.narrow(from, to, n);
  else if constexpr (std::is_same_v<From, bfloat16> && std::is_same_v<To, float>)
    set.widen(from, to, n);
  else
    for (std::int64_t i = 0; i < n; ++i) to[i] = reference::cast<To>(from[i]);
}

template <class From, class To>
void run_copy(InstructionSet const& set, Stream& stream, Copy const& o) {
  auto dense = [](View const& v) { return columns_of(v) <= 1 || v.stride[v.rank - 1u] == 1; };
  if (!dense(o.from) || !dense(o.to)) return reference::copy<From, To>(o);
  if (o.from.contiguous() && o.to.contiguous())
    return each_piece(o.to.elements(), stream, [&](std::int64_t begin, std::int64_t end) {
      convert(set, o.from.as<From>() + begin, o.to.as<To>() + begin, end - begin);
    });
  std::int64_t const n = columns_of(o.to);
  each_row_index(rows_of(o.to), n, stream, [&](std::int64_t r) { convert(set, row<From>(o.from, r), row<To>(o.to, r), n); });
}

template <class T>
void run_fill(Stream& stream, Fill const& o) {
  if (!o.to.contiguous()) return reference::fill<T>(o);
  T const value = reference::cast<T>(o.value);
  each_piece(o.to.elements(), stream,
             [&](std::int64_t begin, std::int64_t end) { std::fill(o.to.as<T>() + begin, o.to.as<T>() + end, value); });
}

/// The weights for the next forward, when a copy of them is asked for: elements [begin, end) of `out`.
template <class T>
void publish(InstructionSet const& set, View const& out, View const& compute, std::int64_t begin, std::int64_t end) {
  if (!compute) return;
  reference::with_floating(compute.dtype, [&](auto tag) {
    using C = decltype(tag);
    convert(set, out.as<T>() + begin, compute.as<C>() + begin, end - begin);
  });
}

/// update(decay, begin, end) over pieces, cut where decay begins and ends; each is published while it is in the cache. When this step
/// is skipped the weights pass through.
template <class T, class Update, class F>
void each_update_piece(InstructionSet const& set, Stream& stream, Update const& o, F&& update) {
  bool const skip = reference::scalar(o.scalars, Scalar::skip) != 0;
  std::int64_t const cuts[] = {0, o.decay_from, o.decay_to, o.weight.elements()};
  for (int i = 0; i < 3; ++i)
    each_piece(cuts[i + 1] - cuts[i], stream, [&, from = cuts[i]](std::int64_t begin, std::int64_t end) {
      begin += from, end += from;
      if (skip)
        convert(set, o.weight.template as<T>() + begin, o.out.template as<T>() + begin, end - begin);
      else
        update(i == 1 ? Decay::yes : Decay::no, begin, end);
      publish<T>(set, o.out, o.compute, begin, end);
    });
}

template <class T>
void run_update(InstructionSet const& set, Updates<T> const& k, Stream& stream, SgdUpdate const& o) {
  SgdCall<T> const call{.weight = o.weight.as<T>(),
                        .gradient = o.gradient.as<T>(),
                        .momentum = o.momentum ? o.momentum.as<T>() : nullptr,
                        .out = o.out.as<T>(),
                        .clip = T(reference::scalar(o.scalars, Scalar::clip)),
                        .rate = T(reference::scalar(o.scalars, Scalar::learning_rate)),
                        .factor = T(o.factor),
                        .decay = T(o.decay),
                        .nesterov = o.nesterov};
  each_update_piece<T>(set, stream, o, [&](Decay decay, std::int64_t begin, std::int64_t end) { k.sgd(call, decay, begin, end); });
}

template <class T>
void run_update(InstructionSet const& set, Updates<T> const& k, Stream& stream, AdamWUpdate const& o) {
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
  each_update_piece<T>(set, stream, o, [&](Decay decay, std::int64_t begin, std::int64_t end) { k.adamw(call, decay, begin, end); });
}

}  // namespace shardmark::cpu
