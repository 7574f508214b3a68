#pragma once
// What an update does, besides the schedule.

#include <cstdint>

#include "base/types.hpp"
#include "optim/lr_schedule.hpp"

namespace shardmark {

enum class Rule : std::uint8_t { sgd, adamw };
enum class Momentum : std::uint8_t { classic, nesterov };

/// Over which samples batch normalisation takes its statistics, and when running statistics move.
enum class BatchNormPolicy : std::uint8_t {
  per_micro,  // each (replica, micro-batch) by itself; running statistics move with each micro-batch
  deferred,   // normalises as per_micro; running statistics move once an update, by all its micro-batches (model/deferred.hpp)
  sync        // that micro-batch of all replicas; with one replica the same as per_micro
};

/// Per-window settings of the optimizer; decay applies to the parameters whose role says so.
struct OptimizerSettings {
  Rule rule = Rule::sgd;
  double momentum = 0;
  Momentum form = Momentum::classic;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8;
  double weight_decay = 0;
  double clip_norm = 0;  // <= 0: no clipping
  LearningRate rate;     // one step per update
  /// State tensors per weight.
  int states() const { return rule == Rule::adamw ? 2 : momentum > 0 ? 1 : 0; }
};

}  // namespace shardmark
