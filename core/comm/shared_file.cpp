#include "comm/shared_file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.hpp"

namespace shardmark {
namespace {

[[noreturn]] void fail_system(std::string_view what) {
  throw BadRequest({std::string(what), std::strerror(errno), "use --comm mpi, which needs no shared memory of ours"});
}

}  // namespace

Mapping::Mapping(int descriptor, std::size_t bytes, int flags) {
  void* const at = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, descriptor, 0);
  if (at == MAP_FAILED) fail_system(fmt::format("{} bytes of memory can't be mapped", bytes));
  data_ = static_cast<std::byte*>(at);
  bytes_ = bytes;
}

Mapping Mapping::anonymous(std::size_t bytes) { return {-1, bytes, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE}; }
Mapping Mapping::of_file(int descriptor, std::size_t bytes) { return {descriptor, bytes, MAP_SHARED}; }

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Mapping::~Mapping() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

SharedFile SharedFile::create() {
  int const descriptor = open(shared_folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
  if (descriptor < 0) fail_system(fmt::format("no file can be made in {}", shared_folder));
  return SharedFile(descriptor);
}

SharedFile SharedFile::of_process(int process, int descriptor) {
  int const mine = open(fmt::format("/proc/{}/fd/{}", process, descriptor).c_str(), O_RDWR | O_CLOEXEC);
  if (mine < 0) fail_system(fmt::format("the shared memory of process {} can't be opened", process));
  return SharedFile(mine);
}

SharedFile::~SharedFile() {
  if (descriptor_ >= 0) close(descriptor_);
}

void SharedFile::resize(std::size_t bytes) {
  if (ftruncate(descriptor_, off_t(bytes)) != 0) fail_system(fmt::format("{} bytes in {} can't be sized", bytes, shared_folder));
}

SharedFile::Reserved SharedFile::reserve(std::size_t begin, std::size_t bytes) {
  if (bytes == 0) return Reserved::all;
  int result;
  do result = posix_fallocate(descriptor_, off_t(begin), off_t(bytes));
  while (result == EINTR);
  if (result == 0) return Reserved::all;
  if (result == ENOSPC || result == ENOMEM) return Reserved::no_space;
  errno = result;
  fail_system(fmt::format("{} bytes in {} can't be reserved", bytes, shared_folder));
}

std::uint64_t shared_memory_free_bytes() {
  struct statvfs status {};
  if (statvfs(shared_folder, &status) != 0) fail_system(fmt::format("{} can't be read", shared_folder));
  return std::uint64_t(status.f_bavail) * status.f_frsize;
}

}  // namespace shardmark
