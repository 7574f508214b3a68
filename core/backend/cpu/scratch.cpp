#include "backend/cpu/scratch.hpp"

#include "backend/cpu/library_matmul.hpp"

namespace shardmark::cpu {

Scratch::Scratch() : pages_(std::size_t(tiles_at) + 2 * attention_tile * attention_tile * sizeof(double)) { limit_library_threads(); }

std::byte* Scratch::room(std::size_t bytes) {
  if (!sums_ || sums_->bytes() < bytes) sums_.emplace(bytes);
  return sums_->data();
}

Scratch& scratch_of_thread() {
  thread_local Scratch scratch;
  return scratch;
}

}  // namespace shardmark::cpu
