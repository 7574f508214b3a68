#pragma once
// exp over arrays, for the vectors of the file that includes this one.

#include "backend/cpu/vec_math.hpp"
#include "validation/unit/cpu/exp.hpp"

namespace shardmark::testing {
namespace {

template <class V, class T>
void exp_over(T const* x, T* y, std::int64_t n) {
  cpu::each_vector<V>(n, [=](std::int64_t i, auto part) { exp(V::load(x + i, part)).store(y + i, part); });
}

constexpr ExpOn exp_on(char const* set) { return {set, exp_over<cpu::F32, float>, exp_over<cpu::F64, double>}; }

}  // namespace
}  // namespace shardmark::testing
