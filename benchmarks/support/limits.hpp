#pragma once
// What this core can do at most, measured in the run whose results are held against it. Best of several trials, since whatever disturbs
// a trial makes it slower.

#include <cstddef>
#include <string>

namespace shardmark {

/// Seconds that this thread ran, so that a busy neighbour on the same core doesn't count.
double thread_seconds();

struct Limits {
  double flops_per_second = 0;  // fp32, multiply-adds in registers; half of it in fp64
  double bytes_per_second = 0;  // read and written

  /// The least time that so much work can take: whichever limit is reached first (the roofline of Williams et al. 2009).
  double seconds(double flops, double bytes) const;
};

/// @param instruction_set  "scalar", "avx2" or "avx512", as the backend names it
double peak_flops_per_second(std::string const& instruction_set);
/// The best of reading, copying and updating in place so many bytes, so that passes are compared with the cache that they run in.
double memory_bytes_per_second(std::size_t footprint_bytes);

}  // namespace shardmark
