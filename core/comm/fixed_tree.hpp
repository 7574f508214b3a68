#pragma once
// The sum T(0 .. n-1) of base/sums.hpp over n buffers, elementwise: the order that Reduction::fixed_tree promises on every transport.

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/types.hpp"

namespace shardmark {

/// out[i] = T(in[0][i], ..., in[n-1][i]) for `elements` elements; bf16 sums in fp32 and rounds once; integers wrap. `out` may be one of
/// `in`.
void sum_fixed_tree(DType dtype, std::span<std::byte const* const> in, std::byte* out, std::int64_t elements);

}  // namespace shardmark
