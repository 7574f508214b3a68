#include "backend/cpu/vec_scalar.hpp"
// The kernels below are made for these vectors.
#include "backend/cpu/kernels.inl"

namespace shardmark::cpu {

InstructionSet const* scalar_kernels() {
  static constexpr InstructionSet set = all_kernels("scalar");
  return &set;
}

}  // namespace shardmark::cpu
