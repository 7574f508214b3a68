#pragma once
// Writing that is on the disk when it says so. Functions give 0, or the system's error number: callers know what to tell the user.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace shardmark {

/// An open file descriptor, closed at the end. Negative when opening failed; errno then has the reason.
class Descriptor {
 public:
  Descriptor(std::string const& path, int flags);
  ~Descriptor();
  Descriptor(Descriptor const&) = delete;
  Descriptor& operator=(Descriptor const&) = delete;
  operator int() const { return value_; }

 private:
  int value_;
};

/// Writes everything where the file stands.
int write_all(int descriptor, std::string_view text);
/// Writes everything at byte `offset`.
int write_all_at(int descriptor, std::span<std::byte const> bytes, std::int64_t offset);
/// What was written is on the disk when this returns.
int sync_file(int descriptor);
/// Files that were made, renamed or removed in `folder` stay so after a crash.
int sync_folder(std::string const& folder);

}  // namespace shardmark
