#include "backend/cpu/vec_avx512.hpp"
// The kernels below are made for these vectors.
#include "backend/cpu/kernels.inl"

namespace shardmark::cpu {

InstructionSet const* avx512_kernels() {
  static constexpr InstructionSet set = all_kernels("avx512");
  return &set;
}

}  // namespace shardmark::cpu
