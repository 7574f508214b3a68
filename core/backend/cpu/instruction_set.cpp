#include "backend/cpu/kernels.hpp"

namespace shardmark::cpu {

InstructionSet const& choose_instruction_set(std::string_view highest) {
  require_input(highest.empty() || highest == "scalar" || highest == "avx2" || highest == "avx512",
                {"unknown instruction set " + std::string(highest), "", "use scalar, avx2 or avx512"});
  bool const any = highest.empty();
  if ((any || highest == "avx512") && has_avx512()) return *avx512_kernels();
  if ((any || highest == "avx512" || highest == "avx2") && has_avx2()) return *avx2_kernels();
  return *scalar_kernels();
}

}  // namespace shardmark::cpu
