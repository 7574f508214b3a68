#include "backend/backend.hpp"

namespace shardmark {

std::unique_ptr<Backend> make_cuda_backend() { throw not_built("CUDA", "this version computes on the CPU; use --backend cpu"); }

}  // namespace shardmark
