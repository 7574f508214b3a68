#pragma once
// Files of data: opened once, refused by name.

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>

#include "base/error.hpp"

namespace shardmark {

/// Ends in BadRequest: can't read PATH (reason); remedy.
[[noreturn]] void refuse_file(std::filesystem::path const& path, std::string const& reason, std::string const& remedy);
/// The same for an error number of the system.
[[noreturn]] void refuse_unreadable(std::filesystem::path const& path, int error);

/// A regular file, open for reading.
class File {
 public:
  explicit File(std::filesystem::path const& path);
  ~File();
  File(File const&) = delete;
  File& operator=(File const&) = delete;
  int descriptor() const { return descriptor_; }
  /// When it was opened.
  std::int64_t size() const { return size_; }

 private:
  int descriptor_;
  std::int64_t size_ = 0;
};

/// The bytes of a file in the page cache: nothing is copied, and the processes of a node share them. The file must not be cut while it is
/// in use; replacing it under its name is harmless.
class MappedFile {
 public:
  explicit MappedFile(std::filesystem::path const& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&&) = delete;
  std::span<std::byte const> bytes() const { return bytes_; }
  std::int64_t size() const { return std::int64_t(bytes_.size()); }
  std::filesystem::path const& path() const { return path_; }
  /// Valid UTF-8, for messages and records.
  std::string shown() const;

 private:
  std::filesystem::path path_;
  std::span<std::byte const> bytes_;
};

/// Refuses what is still packed (gzip, zip, zstd) or belongs to NumPy, by the bytes that such files begin with.
/// @param expected what the file should be, for the message
void require_unpacked(MappedFile const& file, std::string_view expected);

}  // namespace shardmark
