#include "backend/cpu/image_room.hpp"

#include <memory>

#include "backend/backend.hpp"

namespace shardmark::cpu {

void* image_room_bytes(std::int64_t bytes) {
  thread_local std::unique_ptr<Pages> pages;
  if (pages == nullptr || std::int64_t(pages->bytes()) < bytes) pages = std::make_unique<Pages>(std::size_t(bytes));
  return pages->data();
}

}  // namespace shardmark::cpu
