#pragma once
// Marks calls into libraries that allocate for themselves, so that whoever counts allocations can book them apart from ours.

namespace shardmark {

/// Greater than 0 while the thread is inside such a call.
inline thread_local int library_depth = 0;

class LibraryScope {
 public:
  LibraryScope() { ++library_depth; }
  ~LibraryScope() { --library_depth; }
  LibraryScope(LibraryScope const&) = delete;
  LibraryScope& operator=(LibraryScope const&) = delete;
};

}  // namespace shardmark
