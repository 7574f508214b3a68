#include "backend/cpu/vec_avx512.hpp"
// For these vectors.
#include "validation/unit/cpu/exp.inl"

namespace shardmark::testing {

ExpOn exp_on_avx512() { return exp_on("avx512"); }

}  // namespace shardmark::testing
