#include "backend/cpu/vec_avx2.hpp"
// For these vectors.
#include "validation/unit/cpu/exp.inl"

namespace shardmark::testing {

ExpOn exp_on_avx2() { return exp_on("avx2"); }

}  // namespace shardmark::testing
