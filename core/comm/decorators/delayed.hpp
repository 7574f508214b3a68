#pragma once
// Sleeps a random time before each post and before each completion: brings out orders of events that quiet machines never show.

#include <memory>

#include "base/random.hpp"
#include "comm/communicator.hpp"

namespace shardmark {

struct Delays {
  std::uint64_t seed = 0;
  double longest_seconds = 0.002;
};

/// `inner` outlives it; so do the groups that it splits into. For tests.
std::unique_ptr<Communicator> make_delayed(Communicator& inner, Delays delays);

}  // namespace shardmark
