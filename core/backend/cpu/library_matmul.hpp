#pragma once
// Matrix products by oneDNN: fast, but their bits may change with the split of M or N, and they allocate.

#include "backend/cpu/kernels.hpp"

namespace shardmark::cpu {

/// c (+)= op(a) op(b), without the epilogue. @pre k > 0
void library_matmul(MatmulCall<float> const& call);

/// One thread for the library's own parallel regions, in the calling thread: ranks are what uses the other cores.
void limit_library_threads();

}  // namespace shardmark::cpu
