// The replaceable allocation functions of C++ ([new.delete]). All forms, because a sanitizer's own array forms don't call the single ones.

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

void* take_plain(std::size_t bytes) {
  return take([=] { return std::malloc(bytes == 0 ? 1 : bytes); });
}
void* take_aligned(std::size_t bytes, std::align_val_t alignment) {
  std::size_t const unit = std::size_t(alignment);
  // aligned_alloc wants a multiple of the alignment.
  return take([=] { return std::aligned_alloc(unit, bytes == 0 ? unit : (bytes + unit - 1) / unit * unit); });
}

template <class Take>
void* or_null(Take take_memory) noexcept {
  try {
    return take_memory();
  } catch (std::bad_alloc const&) {
    return nullptr;
  }
}

}  // namespace

void* operator new(std::size_t bytes) { return take_plain(bytes); }
void* operator new[](std::size_t bytes) { return take_plain(bytes); }
void* operator new(std::size_t bytes, std::align_val_t alignment) { return take_aligned(bytes, alignment); }
void* operator new[](std::size_t bytes, std::align_val_t alignment) { return take_aligned(bytes, alignment); }

void* operator new(std::size_t bytes, std::nothrow_t const&) noexcept {
  return or_null([=] { return take_plain(bytes); });
}
void* operator new[](std::size_t bytes, std::nothrow_t const&) noexcept {
  return or_null([=] { return take_plain(bytes); });
}
void* operator new(std::size_t bytes, std::align_val_t alignment, std::nothrow_t const&) noexcept {
  return or_null([=] { return take_aligned(bytes, alignment); });
}
void* operator new[](std::size_t bytes, std::align_val_t alignment, std::nothrow_t const&) noexcept {
  return or_null([=] { return take_aligned(bytes, alignment); });
}

void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::nothrow_t const&) noexcept { std::free(memory); }
void operator delete[](void* memory, std::nothrow_t const&) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t, std::nothrow_t const&) noexcept { std::free(memory); }
void operator delete[](void* memory, std::align_val_t, std::nothrow_t const&) noexcept { std::free(memory); }
