#pragma once
// The update: one decision, then SGD or AdamW on every element. Scalars are computed in fp64 and rounded once.

#include <algorithm>
#include <cmath>

#include "backend/reference/loops_memory.hpp"

namespace shardmark::reference {

inline double& scalar(View const& scalars, Scalar which) { return scalars.as<double>()[std::size_t(which)]; }

inline void decide(Decide const& o) {
  double const* const totals = o.totals.as<double>();
  double const norm = std::sqrt(*o.norm_squared.as<double>());
  bool const skip = totals[3] > 0 || !std::isfinite(norm);
  scalar(o.scalars, Scalar::learning_rate) = o.rate;
  scalar(o.scalars, Scalar::clip) = o.max_norm > 0 ? std::min(1.0, o.max_norm / (norm + 1e-6)) : 1.0;
  scalar(o.scalars, Scalar::skip) = skip ? 1 : 0;
  scalar(o.scalars, Scalar::update) += 1;
  scalar(o.scalars, Scalar::norm) = norm;
  scalar(o.scalars, Scalar::loss) = totals[0] / totals[1];
  scalar(o.scalars, Scalar::counted) = totals[1];
  scalar(o.scalars, Scalar::correct) = totals[2];
  scalar(o.scalars, Scalar::nonfinite) = totals[3];
}

/// Rounded copy of element i for the next forward, when one is asked for.
template <class T>
void publish(View const& compute, std::int64_t i, T weight) {
  if (!compute) return;
  with_floating(compute.dtype, [&](auto tag) {
    using C = decltype(tag);
    compute.as<C>()[i] = cast<C>(weight);
  });
}

template <class T, class Update>
void pass_through(Update const& o) {
  for (std::int64_t i = 0; i < o.weight.elements(); ++i) {
    T const weight = o.weight.template as<T>()[i];
    o.out.template as<T>()[i] = weight;
    publish(o.compute, i, weight);
  }
}

/// torch.optim.SGD. Momentum starts at 0, which makes it g after the first update.
template <class T>
void sgd_update(SgdUpdate const& o) {
  if (scalar(o.scalars, Scalar::skip) != 0) return pass_through<T>(o);
  T const rate = T(scalar(o.scalars, Scalar::learning_rate)), clip = T(scalar(o.scalars, Scalar::clip));
  T const factor = T(o.factor), decay = T(o.decay);
  for (std::int64_t i = 0; i < o.weight.elements(); ++i) {
    T weight = o.weight.as<T>()[i];
    T g = clip * o.gradient.as<T>()[i];
    if (i >= o.decay_from && i < o.decay_to) g += decay * weight;
    if (o.momentum) {
      T& momentum = o.momentum.as<T>()[i];
      momentum = factor * momentum + g;
      g = o.nesterov ? g + factor * momentum : momentum;
    }
    weight -= rate * g;
    o.out.as<T>()[i] = weight;
    publish(o.compute, i, weight);
  }
}

/// torch.optim.AdamW. The decay is decoupled: it shrinks the weight, not the gradient.
template <class T>
void adamw_update(AdamWUpdate const& o) {
  if (scalar(o.scalars, Scalar::skip) != 0) return pass_through<T>(o);
  double const rate = scalar(o.scalars, Scalar::learning_rate), update = scalar(o.scalars, Scalar::update);
  T const clip = T(scalar(o.scalars, Scalar::clip));
  T const step = T(rate / (1 - std::pow(o.beta1, update)));
  T const root_correction = T(1 / std::sqrt(1 - std::pow(o.beta2, update)));
  T const shrink = T(1 - rate * o.decay), epsilon = T(o.epsilon);
  T const beta1 = T(o.beta1), rest1 = T(1 - o.beta1), beta2 = T(o.beta2), rest2 = T(1 - o.beta2);
  for (std::int64_t i = 0; i < o.weight.elements(); ++i) {
    T& first = o.first.as<T>()[i];
    T& second = o.second.as<T>()[i];
    T weight = o.weight.as<T>()[i];
    T const g = clip * o.gradient.as<T>()[i];
    if (i >= o.decay_from && i < o.decay_to) weight *= shrink;
    first = beta1 * first + rest1 * g;
    second = beta2 * second + rest2 * (g * g);
    weight -= step * first / (std::sqrt(second) * root_correction + epsilon);
    o.out.as<T>()[i] = weight;
    publish(o.compute, i, weight);
  }
}

}  // namespace shardmark::reference
