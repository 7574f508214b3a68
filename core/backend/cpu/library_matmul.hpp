#pragma once
// Matrix products by oneDNN: fast, but their bits may change with the split of M or N, and they allocate.

#include "backend/cpu/kernels.hpp"

namespace shardmark::cpu {

/// c (+)= op(a) op(b), without the epilogue, by the library's gemm. @pre k > 0
void library_matmul(MatmulCall<float> const& call);
/// The same by its matmul primitive, on a b that is packed for it first.
void packed_matmul(MatmulCall<float> const& call);

/// Whether this processor multiplies bf16 in hardware (AVX512-BF16, AMX), as far as the library may use it.
bool library_has_bfloat16();
/// c (+)= op(a) op(b) + bias (where there is one), summed in fp32 and rounded once; without gelu. The library's code for a shape is made
/// at the thread's first product of that shape, and kept. @pre k > 0, library_has_bfloat16()
void library_matmul(MatmulCall<bfloat16> const& call);
void library_matmul(MatmulCall<bfloat16, bfloat16, float> const& call);
void packed_matmul(MatmulCall<bfloat16> const& call);
void packed_matmul(MatmulCall<bfloat16, bfloat16, float> const& call);

/// One thread for the library's own parallel regions, in the calling thread: ranks are what uses the other cores.
void limit_library_threads();

}  // namespace shardmark::cpu
