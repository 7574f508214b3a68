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
/// TokenRows::cut: x comes as this part's rows and is gathered, once for y_r and again for dW_r, since only the rows are kept between; dX
/// is reduce-scattered.
class ColumnParallelLinear final : public Linear {
 public:
  ColumnParallelLinear(Parameters parameters, Activation activation, InputIs input, TokenRows rows, std::size_t first_slot)
      : Linear(parameters, activation, first_slot), input_(input), rows_(rows) {}
  Tensor forward(Tensor x, Context& context, Stash& stash) override;
  Tensor backward(Tensor dy, Context& context, Stash& stash, Wanted wanted) override;

 private:
  Tensor input_again(Tensor const& rows, Context& context) const;
  Tensor input_gradient(Tensor const& dz, Context& context) const override;
  void weight_gradient(View const& dz, View const& x, Context& context) const override;
  InputIs input_;
  TokenRows rows_;
};

/// W [O,I] cut by columns: each rank holds W_r [O,I/t] and the whole bias, which is a copy. Input [T,I/t], output whole.
///   forward   y = act(sum_r x_r W_r^T (all-reduced) + b), the bias once: it enters through part 0's product
///   backward  dX_r = dz W_r, dW_r = dz^T x_r, db = sum dz: the same on every rank, not reduced
/// TokenRows::cut: y is reduce-scattered, this part's rows of it; dy is gathered, so that dX_r, dW_r and db are as before.
class RowParallelLinear final : public Linear {
 public:
  /// @param chunks  pieces of rows in which y is made, so that sums overlap products; the bits stay
  RowParallelLinear(Parameters parameters, Activation activation, TokenRows rows, int chunks, std::size_t first_slot)
      : Linear(parameters, activation, first_slot), rows_(rows), chunks_(chunks) {
    expect(chunks > 0 && chunks <= TensorPart::most_chunks, "rows are made in 1 to 64 chunks");
    expect(rows == TokenRows::whole || activation == Activation::none, "a gradient that is gathered isn't masked before");
  }
  Tensor forward(Tensor x, Context& context, Stash& stash) override;
  Tensor backward(Tensor dy, Context& context, Stash& stash, Wanted wanted) override;

 private:
  std::int64_t outputs(Context const& context) const;
  void product(View const& x, int p, View const& y, Context& context) const;
  Tensor in_one(Tensor const& x, Context& context) const;
  Tensor in_chunks(Tensor const& x, Context& context) const;
  TokenRows rows_;
  int chunks_;
};

}  // namespace shardmark
