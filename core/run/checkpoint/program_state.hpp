#pragma once
// What a program has to keep to go on later, as named tensors. Names, types and full shapes don't depend on the ranks.

#include <vector>

#include "run/checkpoint/safetensors.hpp"
#include "run/program.hpp"

namespace shardmark {

/// A rank's part of a named tensor.
struct NamedPiece {
  std::string name;
  Slice slice;  // dim < 0 and end > 0: elements [begin, end) of its flat index
  View view;    // contiguous, in host memory
};

struct StoredState {
  std::vector<StoredTensor> weights;  // masters and buffers, under their canonical names
  std::vector<StoredTensor> moments;  // NAME.exp_avg and NAME.exp_avg_sq, or NAME.momentum_buffer, as PyTorch calls them
};
/// All tensors that a job keeps.
StoredState stored_state(Model const& model, OptimizerSettings const& optimizer);

struct HeldState {
  std::vector<NamedPiece> weights, moments;
};
/// What this rank holds of them, where it lies now. @pre drained
HeldState held_state(Program& program);

/// Everything that is kept, on data rank 0; on others what is their own, or nothing where pieces are gathered (into `memory`). Collective
/// over replicas. @pre drained
struct WholeState {
  HeldState held;
  std::unique_ptr<Pages> memory;
};
WholeState whole_state(Program& program);

/// To be called when masters were loaded: weights in a narrower compute type become their rounded copies, and are gathered where their
/// masters are shared. Collective over replicas.
void refresh_compute_weights(Program& program);

}  // namespace shardmark
