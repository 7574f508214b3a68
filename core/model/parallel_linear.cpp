#include "model/parallel_linear.hpp"

namespace shardmark {
namespace {

/// Piece p of `pieces` of a dimension.
View piece(View const& whole, int dim, int p, int pieces) {
  std::int64_t const n = whole.shape[dim] / pieces;
  return slice(whole, dim, p * n, (p + 1) * n);
}

/// Piece p of each of `stacked` matrices that lie side by side along `dim`, side by side as a rank has them. A twin alone needs it.
Tensor gathered_piece(View const& all, int dim, int stacked, int p, int pieces, Context& context) {
  Tensor out = dim == 0 ? context.make(all.dtype, {all.shape[0] / pieces, all.shape[1]})
                        : context.make(all.dtype, {all.shape[0], all.shape[1] / pieces});
  for (int s = 0; s < stacked; ++s) context.run(Copy{piece(piece(all, dim, s, stacked), dim, p, pieces), piece(out.view, dim, s, stacked)});
  return out;
}

/// Memory of the parameter store as a tensor, for an exchange.
Tensor lent(View const& view) { return {Storage(std::shared_ptr<void>(), view.region), view}; }

}  // namespace

Tensor ColumnParallelLinear::input_gradient(Tensor const& dz, Context& context) const {
  if (input_ == InputIs::data) return {};
  int const here = context.tensor.here();
  if (tensor_mutant(context, "input_gradient_not_reduced")) return Linear::input_gradient(dz, context);
  Tensor const dx = sum_of_parts(context, "column input gradient", [&](int p) {
    if (here == 1) return Linear::input_gradient(dz, context);
    View const w = context.store.weights(parameters().weight, parameters().stacked, context.version);
    Tensor const dz_of_part = gathered_piece(dz.view, 1, parameters().stacked, p, here, context);
    Tensor const w_of_part = gathered_piece(w, 0, parameters().stacked, p, here, context);
    Tensor part = rows_by(context, dz, w.shape[1]);
    context.run(Matmul{.a = dz_of_part.view, .b = w_of_part.view, .c = part.view, .bias = {}, .aux = {}});
    return part;
  });
  if (tensor_mutant(context, "input_gradient_reduced_twice")) return context.tensor.sum({&dx, 1}, context, "column input gradient");
  return dx;
}

/// Complete as it is: every rank has all rows of x and dz. The fault adds up what belongs to different rows of W.
void ColumnParallelLinear::weight_gradient(View const& dz, View const& x, Context& context) const {
  Linear::weight_gradient(dz, x, context);
  if (!tensor_mutant(context, "complete_weight_gradient_reduced")) return;
  Tensor const dw = lent(context.store.gradient(parameters().weight, parameters().stacked, parameters().slot));
  context.tensor.sum({&dw, 1}, context, "column weight gradient");
}

Tensor RowParallelLinear::forward(Tensor x, Context& context, Stash& stash) {
  View const w = context.store.weights(parameters().weight, parameters().stacked, context.version);
  View const b = context.store.weights(parameters().bias, parameters().stacked, context.version);
  TensorGroup const& group = context.tensor;
  Tensor const z = sum_of_parts(context, "row output", [&](int p) {
    Tensor part = rows_by(context, x, w.shape[0]);
    Matmul product{.a = piece(x.view, 1, p, group.here()),
                   .b = piece(w, 1, p, group.here()),
                   .c = part.view,
                   .tb = Transpose::yes,
                   .bias = {},
                   .aux = {}};
    if (group.first() + p == 0 || tensor_mutant(context, "row_bias_on_every_rank")) {
      product.epilogue = Epilogue::bias;
      product.bias = b;
    }
    context.run(product);
    return part;
  });
  keep_input(x, stash);
  return activated(z, context, stash);
}

}  // namespace shardmark
