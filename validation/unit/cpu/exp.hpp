#pragma once
// The kernels' exp by itself, compiled for each instruction set as the kernels are.

#include <cstdint>

namespace shardmark::testing {

struct ExpOn {
  char const* set;
  void (*of_floats)(float const* x, float* y, std::int64_t n);
  void (*of_doubles)(double const* x, double* y, std::int64_t n);
};
ExpOn exp_on_scalar();
ExpOn exp_on_avx2();
ExpOn exp_on_avx512();

}  // namespace shardmark::testing
