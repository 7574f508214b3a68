#include "backend/cpu/vec_scalar.hpp"
// The kernels below are made for these vectors.
#include "backend/cpu/kernels.inl"

namespace shardmark::cpu {

InstructionSet const* scalar_kernels() {
  static constexpr InstructionSet set{"scalar", kernels_of<F32>(), kernels_of<F64>()};
  return &set;
}

}  // namespace shardmark::cpu
