#include "base/durable.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace shardmark {
namespace {

/// Calls write(bytes) for what is left until nothing is; it returns how much it took, or a negative number and errno.
template <class Write>
int write_pieces(std::size_t bytes, Write&& write) {
  for (std::size_t done = 0; done < bytes;) {
    ssize_t const written = write(done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return errno;
    done += std::size_t(written);
  }
  return 0;
}

}  // namespace

Descriptor::Descriptor(std::string const& path, int flags) : value_(::open(path.c_str(), flags | O_CLOEXEC, 0666)) {}
Descriptor::~Descriptor() {
  if (value_ >= 0) ::close(value_);
}

int write_all(int descriptor, std::string_view text) {
  return write_pieces(text.size(), [&](std::size_t done) { return ::write(descriptor, text.data() + done, text.size() - done); });
}

int write_all_at(int descriptor, std::span<std::byte const> bytes, std::int64_t offset) {
  return write_pieces(bytes.size(), [&](std::size_t done) {
    return ::pwrite(descriptor, bytes.data() + done, bytes.size() - done, off_t(offset) + off_t(done));
  });
}

// EINVAL: a pipe, device or file system that can't be synchronised.
int sync_file(int descriptor) { return ::fsync(descriptor) != 0 && errno != EINVAL ? errno : 0; }

int sync_folder(std::string const& folder) {
  Descriptor const open(folder.empty() ? "." : folder, O_RDONLY | O_DIRECTORY);
  return open < 0 ? errno : sync_file(open);
}

}  // namespace shardmark
