#pragma once
// Working memory of operations on images: grows at the first uses of a thread, then stays.

#include <cstdint>

namespace shardmark::cpu {

/// At least `bytes`, of the calling thread; the same memory at every call.
void* image_room_bytes(std::int64_t bytes);

template <class T>
T* image_room(std::int64_t elements) {
  return static_cast<T*>(image_room_bytes(elements * std::int64_t(sizeof(T))));
}

}  // namespace shardmark::cpu
