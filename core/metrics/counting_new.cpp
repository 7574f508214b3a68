// The replaceable allocation functions of C++ ([new.delete]); the array and nothrow forms call these by default.

#include <cstdlib>
#include <new>

#include "metrics/allocations.hpp"

namespace {

/// Until memory is found or the new-handler gives up, as the standard asks.
template <class Take>
void* take(Take take_memory) {
  shardmark::detail::count_allocation();
  for (;;) {
    if (void* memory = take_memory(); memory != nullptr) return memory;
    std::new_handler const handler = std::get_new_handler();
    if (handler == nullptr) throw std::bad_alloc();
    handler();
  }
}

}  // namespace

void* operator new(std::size_t bytes) {
  return take([=] { return std::malloc(bytes == 0 ? 1 : bytes); });
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  std::size_t const unit = std::size_t(alignment);
  // aligned_alloc wants a multiple of the alignment.
  return take([=] { return std::aligned_alloc(unit, bytes == 0 ? unit : (bytes + unit - 1) / unit * unit); });
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
