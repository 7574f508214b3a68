#pragma once
// Linear layers cut over the tensor-parallel group (Shoeybi et al. 2019, section 3). A rank holds its part of the weight; a serial twin
// holds the whole, makes the same partial sums from pieces of it, and adds them in the same order (tensor_group.hpp).
//
// strategies/tensor_parallel/README.md derives what is below.

#include "model/layers.hpp"
#include "model/tensor_group.hpp"

namespace shardmark {

/// W [O,I] cut by rows over t ranks: each holds W_r [O/t,I], b_r [O/t]; of stacked matrices (q, k, v) the r-th piece of each. Input whole,
/// output [T,O/t].
///   forward   y_r = act(x W_r^T + b_r)
///   backward  dX = sum_r dz_r W_r (all-reduced), dW_r = dz_r^T x, db_r = sum dz_r: complete as they are
class ColumnParallelLinear final : public Linear {
 public:
  ColumnParallelLinear(Parameters parameters, Activation activation, InputIs input, std::size_t first_slot)
      : Linear(parameters, activation, first_slot), input_(input) {}

 private:
  Tensor input_gradient(Tensor const& dz, Context& context) const override;
  void weight_gradient(View const& dz, View const& x, Context& context) const override;
  InputIs input_;
};

/// W [O,I] cut by columns: each rank holds W_r [O,I/t] and the whole bias, which is a copy. Input [T,I/t], output whole.
///   forward   y = act(sum_r x_r W_r^T (all-reduced) + b), the bias once: it enters through part 0's product
///   backward  dX_r = dz W_r, dW_r = dz^T x_r, db = sum dz: the same on every rank, not reduced
class RowParallelLinear final : public Linear {
 public:
  RowParallelLinear(Parameters parameters, Activation activation, std::size_t first_slot) : Linear(parameters, activation, first_slot) {}
  Tensor forward(Tensor x, Context& context, Stash& stash) override;
};

}  // namespace shardmark
