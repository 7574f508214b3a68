#pragma once
// Learning-rate schedules: one step per *update*, never per micro-batch (case 3).

#include <cstdint>

namespace shardmark {

enum class RateShape : std::uint8_t { constant, linear, cosine };

/// linear and cosine fall from `base` at update 0 towards 0 after `updates` updates; later updates keep the last value.
struct LearningRate {
  double base = 0;
  RateShape shape = RateShape::constant;
  std::int64_t updates = 1;  // of the whole run
  /// Rate of update `update`, 0-based since the run began.
  double at(std::int64_t update) const;
};

}  // namespace shardmark
