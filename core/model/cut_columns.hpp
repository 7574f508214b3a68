#pragma once
// Between tensors that are whole on every rank and tensors cut by columns over the tensor-parallel group, where no linear layer does it.
// A process that has all parts has all columns: nothing is to do.

#include "model/tensor_group.hpp"

namespace shardmark {

/// Behind a column-cut layer: [T,N/t] -> [T,N], an all-gather; backward each part takes its own columns.
class GatherColumns final : public Layer {
 public:
  Tensor forward(Tensor x, Context& context, Stash& stash) override;
  Tensor backward(Tensor dy, Context& context, Stash& stash, Wanted wanted) override;
};

/// In front of a row-cut layer: [T,N] -> [T,N/t], each part takes its own columns; backward is an all-gather.
class ScatterColumns final : public Layer {
 public:
  Tensor forward(Tensor x, Context& context, Stash& stash) override;
  Tensor backward(Tensor dy, Context& context, Stash& stash, Wanted wanted) override;
};

}  // namespace shardmark
