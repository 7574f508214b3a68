#include "data/file.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "data/utf8.hpp"

namespace shardmark {

void refuse_file(std::filesystem::path const& path, std::string const& reason, std::string const& remedy) {
  fail_input({fmt::format("can't read {}", escape_invalid_utf8(path.native())), reason, remedy});
}

void refuse_unreadable(std::filesystem::path const& path, int error) {
  refuse_file(path, std::strerror(error), error == ENOENT ? "check the path" : "check the permissions");
}

// O_NONBLOCK: opening a pipe that nobody writes to would wait for ever. It means nothing for regular files.
File::File(std::filesystem::path const& path) : descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK)) {
  if (descriptor_ < 0) refuse_unreadable(path, errno);
  struct stat status {};
  int const error = ::fstat(descriptor_, &status) != 0 ? errno : 0;
  if (error == 0 && S_ISREG(status.st_mode)) {
    size_ = status.st_size;
    return;
  }
  ::close(descriptor_);
  if (error != 0) refuse_unreadable(path, error);
  refuse_file(path, S_ISDIR(status.st_mode) ? "it is a folder" : "neither a file nor a folder", "give a regular file");
}

File::~File() { ::close(descriptor_); }

MappedFile::MappedFile(std::filesystem::path const& path) : path_(path) {
  File const file(path);
  if (file.size() == 0) return;  // nothing to map, and mmap refuses it
  std::size_t const size = std::size_t(file.size());
  void* const at = ::mmap(nullptr, size, PROT_READ, MAP_PRIVATE, file.descriptor(), 0);
  if (at == MAP_FAILED) refuse_unreadable(path, errno);
  bytes_ = {static_cast<std::byte const*>(at), size};
}

MappedFile::~MappedFile() {
  if (!bytes_.empty()) ::munmap(const_cast<std::byte*>(bytes_.data()), bytes_.size());
}

MappedFile::MappedFile(MappedFile&& other) noexcept : path_(std::move(other.path_)), bytes_(std::exchange(other.bytes_, {})) {}

std::string MappedFile::shown() const { return escape_invalid_utf8(path_.native()); }

void require_unpacked(MappedFile const& file, std::string_view expected) {
  struct Signature {
    std::string_view first_bytes, name, remedy;
  };
  using namespace std::string_view_literals;
  static constexpr Signature signatures[] = {
      {"\x1f\x8b\x08"sv, "gzip's magic 1f 8b", "unpack it with gunzip"},
      {"\x28\xb5\x2f\xfd"sv, "zstd's magic 28 b5 2f fd", "unpack it with unzstd"},
      {"PK\x03\x04"sv, "zip's magic 50 4b 03 04", "unpack it with unzip"},
      {"\x93NUMPY"sv, "NumPy's magic", "write the bare elements: array.tofile(path)"},
  };
  for (Signature const& s : signatures) {
    if (file.bytes().size() < s.first_bytes.size()) continue;
    if (std::memcmp(file.bytes().data(), s.first_bytes.data(), s.first_bytes.size()) == 0)
      refuse_file(file.path(), fmt::format("it begins with {}; expected {}", s.name, expected), std::string(s.remedy));
  }
}

}  // namespace shardmark
