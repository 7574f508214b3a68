#include "backend/cpu/library_matmul.hpp"

namespace shardmark::cpu {

// Without OpenMP in this build, the number of threads is the environment's (OMP_NUM_THREADS, which the programs set to 1).
void limit_library_threads() {}

}  // namespace shardmark::cpu
