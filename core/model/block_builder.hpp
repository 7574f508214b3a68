#pragma once
// How the zoo makes blocks; private to this folder.

#include <cmath>
#include <utility>

#include "model/batch_norm.hpp"
#include "model/cut_columns.hpp"
#include "model/layers.hpp"
#include "model/parallel_linear.hpp"
#include "model/vocabulary_loss.hpp"
#include "model/zoo.hpp"

namespace shardmark {

/// Collects the layers of one block and hands out its stash slots.
class BlockBuilder {
 public:
  template <class L, class... Args>
  BlockBuilder& add(Args&&... args) {
    layers_.push_back(std::make_unique<L>(std::forward<Args>(args)..., slots_));
    slots_ += L::slots;
    return *this;
  }
  /// @param cut  of what is dropped, a part of `full_width` columns
  BlockBuilder& dropout(double p, std::uint64_t layer, Slice cut = {}, std::int64_t full_width = 0) {
    if (p > 0) layers_.push_back(std::make_unique<DropoutLayer>(p, layer, cut, full_width));
    return *this;
  }
  /// Of this part's rows, where they are cut.
  BlockBuilder& dropout(double p, std::uint64_t layer, TokenRows rows) {
    if (p > 0) layers_.push_back(std::make_unique<DropoutLayer>(p, layer, rows));
    return *this;
  }
  /// A linear layer, cut by columns or rows where the model is a part.
  BlockBuilder& column(TensorPart part, Linear::Parameters parameters, Activation activation, InputIs input = InputIs::activation) {
    return part.cuts() ? add<ColumnParallelLinear>(parameters, activation, input, part.rows) : add<Linear>(parameters, activation);
  }
  BlockBuilder& row(TensorPart part, Linear::Parameters parameters, Activation activation) {
    return part.cuts() ? add<RowParallelLinear>(parameters, activation, part.rows, part.chunks) : add<Linear>(parameters, activation);
  }
  /// The first slot of what is added next.
  std::size_t next_slot() const { return slots_; }
  /// What was added since the last call becomes one residual branch.
  BlockBuilder& residual() {
    std::vector<std::unique_ptr<Layer>> branch(std::make_move_iterator(layers_.begin() + std::ptrdiff_t(start_)),
                                               std::make_move_iterator(layers_.end()));
    layers_.resize(start_);
    layers_.push_back(std::make_unique<Residual>(std::make_unique<Chain>(std::move(branch))));
    start_ = layers_.size();
    return *this;
  }
  /// What was added so far runs before the pieces' statistics are merged, what follows after it.
  BlockBuilder& batch_norm(BatchNormParts parts) {
    parts.first_slot = slots_;
    slots_ += batch_norm_slots;
    layers_.push_back(std::make_unique<BatchStatistics>(parts));
    before_ = std::exchange(layers_, {});
    layers_.push_back(std::make_unique<BatchNormalise>(parts));
    start_ = 0;
    return *this;
  }
  /// A layer that saves nothing.
  template <class L, class... Args>
  BlockBuilder& stateless(Args&&... args) {
    layers_.push_back(std::make_unique<L>(std::forward<Args>(args)...));
    return *this;
  }
  Block finish(std::string name) {
    Block block;
    block.name = std::move(name);
    bool const merges = !before_.empty();
    block.body = std::make_unique<Chain>(std::move(merges ? before_ : layers_));
    if (merges) block.merged = std::make_unique<Chain>(std::move(layers_));
    block.slots = slots_;
    return block;
  }

 private:
  std::vector<std::unique_ptr<Layer>> layers_, before_;
  std::size_t slots_ = 0, start_ = 0;
};

/// How weights, biases and gains start, by style.
struct Initials {
  InitialStyle style;
  bool verifying() const { return style == InitialStyle::verifying; }
  Initial weight(double training_deviation, std::int64_t fan_in) const {
    return {Initial::Kind::normal, verifying() ? 1 / std::sqrt(double(fan_in)) : training_deviation};
  }
  Initial embedding(double training_deviation) const { return {Initial::Kind::normal, verifying() ? 0.5 : training_deviation}; }
  Initial bias() const { return verifying() ? Initial{Initial::Kind::normal, 0.1} : Initial{}; }
  Initial gain() const { return verifying() ? Initial{Initial::Kind::normal, 0.2, 1} : Initial{Initial::Kind::one}; }
};

}  // namespace shardmark
