#pragma once
// The one clock of all measurements: CLOCK_MONOTONIC, the same for all processes of one kernel (unless a time namespace shifts it).

#include <cstdint>

namespace shardmark {

/// Unit: nanoseconds since an arbitrary point.
std::int64_t now_ns();
inline double seconds_between(std::int64_t begin_ns, std::int64_t end_ns) { return double(end_ns - begin_ns) * 1e-9; }
/// Smallest step between two readings that was seen in a short trial: what one measurement can resolve, call included.
double measure_clock_resolution_ns();

}  // namespace shardmark
