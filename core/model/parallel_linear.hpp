#pragma once
// Linear layers split over the tensor-parallel group (Shoeybi et al. 2019, section 3). The communicator is bound at construction.

#include "comm/communicator.hpp"
#include "model/layer.hpp"

namespace shardmark {

/// W [O,I] split by rows over t ranks: each holds W_r [O/t,I], b_r [O/t]. Input full, output [T,O/t].
///   forward   y_r = x W_r^T + b_r
///   backward  dX = sum_r dY_r W_r (all-reduced), dW_r = dY_r^T x, db_r = sum dY_r: complete as they are
class ColumnParallelLinear final : public Layer {
 public:
  static constexpr std::size_t slots = 2;  // x (weight), dy (weight, split backward)
  ColumnParallelLinear(ParamId weight, ParamId bias, Communicator& group, std::size_t first_slot)
      : weight_(weight), bias_(bias), group_(group), first_(first_slot) {}
  Tensor forward(Tensor x, Context& context, Stash& stash) override;
  Tensor backward(Tensor dy, Context& context, Stash& stash, Wanted wanted) override;

 private:
  ParamId weight_, bias_;
  Communicator& group_;
  std::size_t first_;
};

/// W [O,I] split by columns: each rank holds W_r [O,I/t] and the full bias, which is a copy. Input [T,I/t], output full.
///   forward   y = sum_r x_r W_r^T (all-reduced) + b, the bias once: it enters through rank 0's partial product
///   backward  dX_r = dY W_r, dW_r = dY^T x_r, db = sum dY: the same on every rank, not reduced
class RowParallelLinear final : public Layer {
 public:
  static constexpr std::size_t slots = 2;
  RowParallelLinear(ParamId weight, ParamId bias, Communicator& group, std::size_t first_slot)
      : weight_(weight), bias_(bias), group_(group), first_(first_slot) {}
  Tensor forward(Tensor x, Context& context, Stash& stash) override;
  Tensor backward(Tensor dy, Context& context, Stash& stash, Wanted wanted) override;

 private:
  ParamId weight_, bias_;
  Communicator& group_;
  std::size_t first_;
};

/// Piece `rank` of `size` of a dimension of `n`. @throws BadRequest that lists the valid divisors when it isn't divisible.
Slice even_slice(int dim, std::int64_t n, int size, int rank, std::string const& what);

}  // namespace shardmark
