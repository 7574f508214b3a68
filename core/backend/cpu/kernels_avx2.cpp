#include "backend/cpu/vec_avx2.hpp"
// The kernels below are made for these vectors.
#include "backend/cpu/kernels.inl"

namespace shardmark::cpu {

InstructionSet const* avx2_kernels() {
  static constexpr InstructionSet set = all_kernels("avx2");
  return &set;
}

}  // namespace shardmark::cpu
