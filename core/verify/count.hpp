#pragma once
// A number that a rank counted, and what it must be.

#include <string>

namespace shardmark {

/// Good when |counted - expected| <= tolerance.
struct Count {
  std::string what;
  double counted = 0, expected = 0, tolerance = 0;
};

}  // namespace shardmark
