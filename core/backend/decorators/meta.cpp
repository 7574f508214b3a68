#include "backend/decorators/meta.hpp"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>

#include <fmt/format.h>

namespace shardmark {

MetaBackend::~MetaBackend() {
  for (auto const& [data, bytes] : slabs_) munmap(data, bytes);
}

void MetaBackend::run(Stream& stream, Op const& op) {
  validate(op);
  mark_touched(stream, op);
  OpCount& count = counts_[op.index()];
  count.calls += 1;
  count.flops += flops(op);
  count.bytes += bytes(op);
}

Region MetaBackend::reserve(std::size_t bytes, Place place) {
  std::size_t const mapped = bytes == 0 ? 1 : bytes;
  void* const at = mmap(nullptr, mapped, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (at == MAP_FAILED)
    throw RankFailure(fmt::format("{} bytes of address space can't be had ({}); plan a smaller model", bytes, std::strerror(errno)));
  slabs_.emplace_back(at, mapped);
  return {static_cast<std::byte*>(at), bytes, place};
}

OpCount MetaBackend::count(std::string_view op) const {
  for (std::size_t i = 0; i < counts_.size(); ++i)
    if (name_of_kind(i) == op) return counts_[i];
  throw Error(Exit::rank_failed, fmt::format("there is no operation '{}'", op));
}

OpCount MetaBackend::total() const {
  OpCount sum;
  for (OpCount const& count : counts_) {
    sum.calls += count.calls;
    sum.flops += count.flops;
    sum.bytes += count.bytes;
  }
  return sum;
}

std::unique_ptr<MetaBackend> make_meta_backend() { return std::make_unique<MetaBackend>(); }

}  // namespace shardmark
