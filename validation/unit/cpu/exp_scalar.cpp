#include "backend/cpu/vec_scalar.hpp"
// For these vectors.
#include "validation/unit/cpu/exp.inl"

namespace shardmark::testing {

ExpOn exp_on_scalar() { return exp_on("scalar"); }

}  // namespace shardmark::testing
