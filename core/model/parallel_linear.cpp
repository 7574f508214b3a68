#include "model/parallel_linear.hpp"

#include <array>

namespace shardmark {
namespace {

/// Piece p of each of `stacked` matrices that lie side by side along `dim`, side by side as a rank has them. A twin alone needs it.
Tensor gathered_piece(View const& all, int dim, int stacked, int p, int pieces, Context& context) {
  std::int64_t const n = stacked * piece_of(all.shape[std::size_t(dim)] / stacked, pieces, p).size();
  Tensor out = dim == 0 ? context.make(all.dtype, {n, all.shape[1]}) : context.make(all.dtype, {all.shape[0], n});
  for (int s = 0; s < stacked; ++s) context.run(Copy{piece(piece(all, dim, s, stacked), dim, p, pieces), piece(out.view, dim, s, stacked)});
  return out;
}

/// Memory of the parameter store as a tensor, for an exchange.
Tensor lent(View const& view) { return {Storage(std::shared_ptr<void>(), view.region), view}; }

}  // namespace

Tensor ColumnParallelLinear::forward(Tensor x, Context& context, Stash& stash) {
  if (rows_ == TokenRows::whole) return Linear::forward(std::move(x), context, stash);
  Tensor y = Linear::forward(context.tensor.all_rows(x, context, "column input"), context, stash);
  keep_input(std::move(x), stash);
  return y;
}

Tensor ColumnParallelLinear::backward(Tensor dy, Context& context, Stash& stash, Wanted wanted) {
  bool const gathers = rows_ == TokenRows::cut && wants_weight(wanted);
  if (gathers) keep_input(input_again(take_input(stash), context), stash);
  Tensor dx = Linear::backward(std::move(dy), context, stash, wanted);
  if (gathers) take_input(stash);  // all rows are needed no longer
  return dx;
}

Tensor ColumnParallelLinear::input_again(Tensor const& rows, Context& context) const {
  if (!tensor_mutant(context, "input_not_gathered_again")) return context.tensor.all_rows(rows, context, "column input again");
  Tensor all = context.make(rows.view.dtype, {rows.view.shape[0] * context.tensor.parts(), rows.view.shape[1]});
  context.run(Fill{all.view, 0});
  context.run(Copy{rows.view, piece(all.view, 0, context.tensor.first(), context.tensor.parts())});
  return all;
}

Tensor ColumnParallelLinear::input_gradient(Tensor const& dz, Context& context) const {
  if (input_ == InputIs::data) return {};
  int const here = context.tensor.here();
  if (tensor_mutant(context, "input_gradient_not_reduced")) return Linear::input_gradient(dz, context);
  Tensor const dx = sum_of_parts(
      context, "column input gradient",
      [&](int p) {
        if (here == 1) return Linear::input_gradient(dz, context);
        View const w = context.store.weights(parameters().weight, parameters().stacked, context.version);
        Tensor const dz_of_part = gathered_piece(dz.view, 1, parameters().stacked, p, here, context);
        Tensor const w_of_part = gathered_piece(w, 0, parameters().stacked, p, here, context);
        Tensor part = rows_by(context, dz, w.shape[1]);
        context.run(Matmul{.a = dz_of_part.view, .b = w_of_part.view, .c = part.view, .bias = {}, .aux = {}});
        return part;
      },
      rows_);
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

/// y = x W^T of the p-th part that is here; the first part of all adds the bias.
void RowParallelLinear::product(View const& x, int p, View const& y, Context& context) const {
  TensorGroup const& group = context.tensor;
  View const w = context.store.weights(parameters().weight, parameters().stacked, context.version);
  Matmul product{.a = piece(x, 1, p, group.here()), .b = piece(w, 1, p, group.here()), .c = y, .tb = Transpose::yes, .bias = {}, .aux = {}};
  if (group.first() + p == 0 || tensor_mutant(context, "row_bias_on_every_rank")) {
    product.epilogue = Epilogue::bias;
    product.bias = context.store.weights(parameters().bias, parameters().stacked, context.version);
  }
  context.run(product);
}

Tensor RowParallelLinear::forward(Tensor x, Context& context, Stash& stash) {
  bool const overlaps = chunks_ > 1 && context.tensor.spans_ranks();
  Tensor const z = overlaps ? in_chunks(x, context) : in_one(x, context);
  keep_input(x, stash);
  return activated(z, context, stash);
}

Tensor RowParallelLinear::in_one(Tensor const& x, Context& context) const {
  auto const partial = [&](int p) {
    Tensor part = rows_by(context, x, outputs(context));
    product(x.view, p, part.view, context);
    return part;
  };
  return sum_of_parts(context, "row output", partial, rows_);
}

std::int64_t RowParallelLinear::outputs(Context const& context) const {
  return context.store.weights(parameters().weight, parameters().stacked, context.version).shape[0];
}

/// The sum of each piece of rows is under way while the next piece is made. Of rows that are cut, a piece has some of every part's.
Tensor RowParallelLinear::in_chunks(Tensor const& x, Context& context) const {
  TensorGroup& group = context.tensor;
  int const owners = rows_ == TokenRows::cut ? group.parts() : 1;
  std::int64_t const rows = x.view.shape[0], own = rows / owners, width = outputs(context);
  Tensor const y = context.make(x.view.dtype, {own, width});
  std::array<Request, TensorPart::most_chunks> open;
  for (int c = 0; c < chunks_; ++c) {
    Range const some = piece_of(own, chunks_, c);
    Tensor const result = with_view(y, slice(y.view, 0, some.begin, some.end));
    Tensor const made = owners == 1 ? result : context.make(x.view.dtype, {owners * some.size(), width});
    for (int o = 0; o < owners; ++o)
      product(slice(x.view, 0, o * own + some.begin, o * own + some.end), 0, piece(made.view, 0, o, owners), context);
    open[std::size_t(c)] = group.start_sum(made, result, rows_, context, "row output");
  }
  for (int c = 0; c < chunks_; ++c) group.wait(std::move(open[std::size_t(c)]), context);
  return y;
}

Tensor RowParallelLinear::backward(Tensor dy, Context& context, Stash& stash, Wanted wanted) {
  if (rows_ == TokenRows::cut && wants_input(wanted)) dy = context.tensor.all_rows(dy, context, "row output gradient");
  return Linear::backward(std::move(dy), context, stash, wanted);
}

}  // namespace shardmark
