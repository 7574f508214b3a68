#pragma once
// Elementwise passes, sums and updates.

#include "backend/cpu/kernels.hpp"
#include "backend/cpu/vec_math.hpp"

namespace shardmark::cpu {
namespace {

template <class V, class T = typename V::Scalar>
void gelu_pass(T const* x, T* y, std::int64_t n) {
  each_vector<V>(n, [=](std::int64_t i, auto part) { gelu(V::load(x + i, part)).store(y + i, part); });
}
template <class V, class T = typename V::Scalar>
void gelu_input_pass(T const* x, T const* dy, T* dx, std::int64_t n) {
  each_vector<V>(n, [=](std::int64_t i, auto part) { (V::load(dy + i, part) * gelu_slope(V::load(x + i, part))).store(dx + i, part); });
}
/// max gives its second operand when that is NaN: a NaN comes through.
template <class V, class T = typename V::Scalar>
void relu_pass(T const* x, T* y, std::int64_t n) {
  each_vector<V>(n, [=](std::int64_t i, auto part) { max(V::set(0), V::load(x + i, part)).store(y + i, part); });
}
template <class V, class T = typename V::Scalar>
void relu_input_pass(T const* y, T const* dy, T* dx, std::int64_t n) {
  each_vector<V>(n, [=](std::int64_t i, auto part) {
    select(V::load(y + i, part) > V::set(0), V::load(dy + i, part), V::set(0)).store(dx + i, part);
  });
}

template <class V, class T = typename V::Scalar>
void add_pass(T const* x, typename V::Scalar* y, std::int64_t n) {
  each_vector<V>(n, [=](std::int64_t i, auto part) { (V::load(y + i, part) + V::load(x + i, part)).store(y + i, part); });
}
template <class V, class T>
void sum_of_two_pass(T const* x, T const* y, T* out, std::int64_t n) {
  each_vector<V>(n, [=](std::int64_t i, auto part) { (V::load(x + i, part) + V::load(y + i, part)).store(out + i, part); });
}
template <class V, class From, class To>
void cast_pass(From const* from, To* to, std::int64_t n) {
  each_vector<V>(n, [=](std::int64_t i, auto part) { V::load(from + i, part).store(to + i, part); });
}

/// The canonical tree as a binary counter: level l holds the sum of 2^l leaves; what is left at the end is folded from the right.
template <class V, class T>
[[gnu::always_inline]] inline V sum_of_leaves(std::span<View const> in, std::int64_t i, auto part) {
  auto leaf = [&](std::size_t at) { return V::load(reinterpret_cast<T const*>(in[at].data) + i, part); };
  if (in.size() == 2) return leaf(0) + leaf(1);
  V level[64];
  for (std::size_t at = 0; at < in.size(); ++at) {
    V sum = leaf(at);
    int l = 0;
    for (; (at >> l & 1) != 0; ++l) sum = level[l] + sum;
    level[l] = sum;
  }
  int l = __builtin_ctzll(in.size());
  V sum = level[l];
  for (++l; in.size() >> l != 0; ++l)
    if ((in.size() >> l & 1) != 0) sum = level[l] + sum;
  return sum;
}
template <class V, class T = typename V::Scalar>
void sum_tree_pass(std::span<View const> in, T* out, std::int64_t begin, std::int64_t n) {
  each_vector<V>(n, [=](std::int64_t i, auto part) { sum_of_leaves<V, T>(in, begin + i, part).store(out + i, part); });
}

/// D: vectors of doubles.
template <class D, class T>
double norm_leaf_pass(T const* x, std::int64_t n) {
  return sum_vectors<D>(n, [=](std::int64_t i, auto part) {
    D const wide = D::widen(x + i, part);
    return wide * wide;
  });
}

/// 0 x is 0 for finite x only.
template <class V, class T = typename V::Scalar>
bool all_finite_pass(T const* x, std::int64_t n) {
  return sum_vectors<V>(n, [=](std::int64_t i, auto part) { return V::load(x + i, part) * V::set(0); }) == 0;
}

// The updates use separate multiplications and additions, in the order of their reference loops: the same bits on every processor.

template <class V, class T = typename V::Scalar>
void sgd_pass(SgdCall<T> const& u, Decay decay, std::int64_t begin, std::int64_t end) {
  each_vector<V>(end - begin, [&u, decay, begin](std::int64_t at, auto part) {
    std::int64_t const i = begin + at;
    V const weight = V::load(u.weight + i, part);
    V g = V::set(u.clip) * V::load(u.gradient + i, part);
    if (decay == Decay::yes) g = g + V::set(u.decay) * weight;
    if (u.momentum != nullptr) {
      V const momentum = V::set(u.factor) * V::load(u.momentum + i, part) + g;
      momentum.store(u.momentum + i, part);
      g = u.nesterov ? g + V::set(u.factor) * momentum : momentum;
    }
    (weight - V::set(u.rate) * g).store(u.out + i, part);
  });
}

template <class V, class T = typename V::Scalar>
void adamw_pass(AdamWCall<T> const& u, Decay decay, std::int64_t begin, std::int64_t end) {
  each_vector<V>(end - begin, [&u, decay, begin](std::int64_t at, auto part) {
    std::int64_t const i = begin + at;
    V weight = V::load(u.weight + i, part);
    V const g = V::set(u.clip) * V::load(u.gradient + i, part);
    if (decay == Decay::yes) weight = weight * V::set(u.shrink);
    V const first = V::set(u.beta1) * V::load(u.first + i, part) + V::set(u.rest1) * g;
    V const second = V::set(u.beta2) * V::load(u.second + i, part) + V::set(u.rest2) * (g * g);
    first.store(u.first + i, part);
    second.store(u.second + i, part);
    V const divisor = sqrt(second) * V::set(u.root_correction) + V::set(u.epsilon);
    (weight - V::set(u.step) * first / divisor).store(u.out + i, part);
  });
}

}  // namespace
}  // namespace shardmark::cpu
