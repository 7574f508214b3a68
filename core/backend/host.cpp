#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include <fmt/format.h>

#include "backend/backend.hpp"
#include "backend/op_access.hpp"

namespace shardmark {

void mark_touched(Stream const& stream, Op const& op) {
  std::uint32_t const bit = 1u << stream.index();
  each_view(op, [bit](View const& view, Access) {
    if (view.region != nullptr) view.region->touched_by |= bit;
  });
}

Pages::Pages(std::size_t bytes) : bytes_(bytes) {
  constexpr std::size_t huge_page = std::size_t{2} << 20;
  std::size_t const mapped = bytes == 0 ? 1 : bytes;
  void* const at = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (at == MAP_FAILED)
    throw RankFailure(fmt::format("{} bytes of memory can't be had ({}); use a smaller model or more ranks", bytes, std::strerror(errno)));
  data_ = static_cast<std::byte*>(at);
  // Advice only: a kernel without transparent huge pages says no and all still works.
  if (bytes >= huge_page) madvise(at, mapped, MADV_HUGEPAGE);
}

Pages::Pages(Pages&& other) noexcept : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}

Pages::~Pages() {
  if (data_ != nullptr) munmap(data_, bytes_ == 0 ? 1 : bytes_);
}

}  // namespace shardmark
