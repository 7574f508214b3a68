// For processors that aren't x86: the scalar kernels are all there is.

#include "backend/cpu/kernels.hpp"

namespace shardmark::cpu {

InstructionSet const* avx2_kernels() { return nullptr; }
InstructionSet const* avx512_kernels() { return nullptr; }
bool has_avx2() { return false; }
bool has_avx512() { return false; }

}  // namespace shardmark::cpu
