#include "optim/lr_schedule.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace shardmark {

double LearningRate::at(std::int64_t update) const {
  double const done =
      double(std::clamp<std::int64_t>(update, 0, std::max<std::int64_t>(updates - 1, 0))) / double(std::max<std::int64_t>(updates, 1));
  switch (shape) {
    case RateShape::constant:
      return base;
    case RateShape::linear:
      return base * (1 - done);
    case RateShape::cosine:
      return base * 0.5 * (1 + std::cos(std::numbers::pi * done));
  }
  return base;
}

}  // namespace shardmark
