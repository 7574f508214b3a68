#include "metrics/clock.hpp"

#include <algorithm>
#include <ctime>
#include <limits>

namespace shardmark {

std::int64_t now_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return std::int64_t{time.tv_sec} * 1'000'000'000 + time.tv_nsec;
}

double measure_clock_resolution_ns() {
  std::int64_t smallest = std::numeric_limits<std::int64_t>::max();
  for (int i = 0; i < 1000; ++i) {
    std::int64_t const begin = now_ns();
    std::int64_t end = begin;
    while (end == begin) end = now_ns();
    smallest = std::min(smallest, end - begin);
  }
  return double(smallest);
}

}  // namespace shardmark
