#include "backend/cpu/scratch.hpp"

#include "backend/cpu/library_matmul.hpp"

namespace shardmark::cpu {

Scratch::Scratch() : pages_(std::size_t(tiles_at) + 2 * attention_tile * attention_tile * sizeof(double)) { limit_library_threads(); }

Scratch const& scratch_of_thread() {
  thread_local Scratch const scratch;
  return scratch;
}

}  // namespace shardmark::cpu
