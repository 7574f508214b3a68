#include "record/files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "base/durable.hpp"
#include "base/error.hpp"
#include "data/utf8.hpp"

namespace shardmark::record {
namespace {

[[noreturn]] void fail(std::string const& what, std::string const& path, int error, std::string const& remedy) {
  throw RankFailure(Refusal{fmt::format("can't {} {}", what, escape_invalid_utf8(path)), std::strerror(error), remedy}.text());
}

/// The file at `path`, open. @throws RankFailure when it can't be opened
class OpenFile : public Descriptor {
 public:
  OpenFile(std::string const& path, int flags, char const* what) : Descriptor(path, flags) {
    if (*this < 0) fail(what, path, errno, "check the path and its permissions");
  }
};

void lock(Descriptor const& file, std::string const& path) {
  while (::flock(file, LOCK_EX) != 0) {
    if (errno != EINTR) fail("lock", path, errno, "use a file system with locks");
  }
}

off_t size_of(Descriptor const& file, std::string const& path) {
  struct stat status {};
  if (::fstat(file, &status) != 0) fail("read the size of", path, errno, "check the file system");
  return status.st_size;
}

bool ends_in_line(Descriptor const& file, off_t size) {
  char last = '\n';
  return size == 0 || (::pread(file, &last, 1, size - 1) == 1 && last == '\n');
}

void append(std::string const& path, std::string_view header, std::string_view line) {
  OpenFile const file(path, O_RDWR | O_APPEND | O_CREAT, "append to");
  lock(file, path);  // until the descriptor is closed, or its process dies
  off_t const before = size_of(file, path);
  std::string text;
  if (before == 0 && !header.empty()) text += fmt::format("{}\n", header);
  if (!ends_in_line(file, before)) text += '\n';
  text += line;
  text += '\n';
  int error = write_all(file, text);
  if (error == 0) error = sync_file(file);
  if (error == 0) return;
  bool const taken_back = ::ftruncate(file, before) == 0;
  fail("append to", path, error,
       taken_back ? "earlier lines are intact, this one is not in the file" : "earlier lines are intact, the last one is torn");
}

}  // namespace

void append_line(std::string const& path, std::string_view line) { append(path, {}, line); }

void append_line_under(std::string const& path, std::string_view header, std::string_view line) { append(path, header, line); }

void replace_file(std::string const& path, std::string_view text) {
  std::string const beside = fmt::format("{}.{}.part", path, ::getpid());
  int error = 0;
  {
    OpenFile const file(beside, O_WRONLY | O_CREAT | O_TRUNC, "write");
    error = write_all(file, text);
    if (error == 0) error = sync_file(file);
  }
  if (error == 0 && std::rename(beside.c_str(), path.c_str()) != 0) error = errno;
  if (error != 0) {
    ::unlink(beside.c_str());
    fail("write", path, error, "the file is as it was before");
  }
  // The rename itself is durable once its folder is.
  error = sync_folder(std::filesystem::path(path).parent_path().native());
  if (error != 0) fail("write", path, error, "check the file system");
}

void require_appendable(std::string const& path, std::string_view option) {
  int const file = ::open(path.c_str(), O_RDWR | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
  int const error = errno;
  if (file >= 0) ::close(file);
  require_input(file >= 0, {fmt::format("{} {} can't be written", option, escape_invalid_utf8(path)), file >= 0 ? "" : std::strerror(error),
                            "give a file in an existing folder that you may write to"});
}

}  // namespace shardmark::record
