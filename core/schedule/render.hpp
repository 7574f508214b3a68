#pragma once
// Pictures of schedules.

#include <string>

#include "schedule/schedule.hpp"

namespace shardmark {

/// Text picture, one row a lane; at most `columns` wide. Coarse schedules in unit time as in the papers' figures:
///   stage 0 | F0 F1 F2 F3  .  . B3 B2 B1 B0  R  U
std::string render(Schedule const& schedule, int columns = 100);

}  // namespace shardmark
