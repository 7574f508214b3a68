#pragma once
// The schedule that a run starts from: the strategy's own, or one that a user wrote (--schedule).

#include <string>

#include "app/options.hpp"

namespace shardmark {

class Strategy;

/// What a user wrote, as text.hpp says. @throws BadRequest with line and column, or when the file can't be read
Schedule read_schedule(std::string const& file);

/// The coarse schedule of the options. A written one has passed the checker when this returns, and keeps what the strategy promises: ranks,
/// micro-batches, updates and how far its weights lag.
/// @throws BadRequest naming the first bad action, or what doesn't fit
Schedule coarse_schedule(Strategy const& strategy, Options const& options, int ranks);

}  // namespace shardmark
