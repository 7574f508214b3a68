#pragma once
// Counts heap allocations of this process, to prove that a step makes none after warm-up.
// Programs that link shardmark_allocations have counting operators new; memory that C libraries take by malloc is not seen.

#include <cstdint>

namespace shardmark {

/// Calls of operator new by all threads since the program began.
struct AllocationCounts {
  std::uint64_t ours = 0;
  std::uint64_t in_libraries = 0;  // made inside a LibraryScope
  friend AllocationCounts operator+(AllocationCounts a, AllocationCounts b) { return {a.ours + b.ours, a.in_libraries + b.in_libraries}; }
  friend AllocationCounts operator-(AllocationCounts a, AllocationCounts b) { return {a.ours - b.ours, a.in_libraries - b.in_libraries}; }
};

AllocationCounts allocations();
/// Whether this program counts at all.
bool allocations_are_counted();

namespace detail {
/// Called by the counting operators alone.
void count_allocation() noexcept;
}  // namespace detail

}  // namespace shardmark
