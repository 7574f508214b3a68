#include <omp.h>

#include "backend/cpu/library_matmul.hpp"

namespace shardmark::cpu {

void limit_library_threads() { omp_set_num_threads(1); }

}  // namespace shardmark::cpu
