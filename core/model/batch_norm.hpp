#pragma once
// Batch normalisation (Ioffe and Szegedy 2015) in two layers, so that statistics can be merged between them, forward and backward:
//
//   forward   BatchStatistics: moments of this piece -> pieces | BatchNormalise: merge, normalise, move the running statistics
//   backward  BatchStatistics: merge, input gradient           <- pieces | BatchNormalise: sums of dy and dy xhat
//
// Between the two the gradient is that of the normalised output. dgamma and dbeta are this piece's own sums: the reduction of
// gradients adds them. x [T,C], T = rows x positions.

#include "model/layer.hpp"

namespace shardmark {

inline constexpr double batch_norm_epsilon = 1e-5, batch_norm_momentum = 0.1;

struct BatchNormParts {
  ParamId gamma, beta;
  RunningBuffers running;
  std::size_t first_slot = 0;
};

/// Slots of both: x, merged moments, mean, rstd (input), sums of dy xhat and dy (weight).
inline constexpr std::size_t batch_norm_slots = 5;

/// Moves running statistics by `moments`, f64 [1 + 2C].
RunningUpdate running_update(View const& moments, RunningBuffers const& running, ParameterStore const& store);

class BatchStatistics final : public Layer {
 public:
  explicit BatchStatistics(BatchNormParts parts) : parts_(parts) {}
  Tensor forward(Tensor x, Context& context, Stash& stash) override;
  Tensor backward(Tensor dy, Context& context, Stash& stash, Wanted wanted) override;

 private:
  BatchNormParts parts_;
};

/// Evaluation normalises with the running statistics.
class BatchNormalise final : public Layer {
 public:
  explicit BatchNormalise(BatchNormParts parts) : parts_(parts) {}
  Tensor forward(Tensor x, Context& context, Stash& stash) override;
  Tensor backward(Tensor dy, Context& context, Stash& stash, Wanted wanted) override;

 private:
  void move_running(Tensor const& moments, Context& context) const;
  void weight_gradient(View const& sums, Context& context) const;
  BatchNormParts parts_;
};

}  // namespace shardmark
