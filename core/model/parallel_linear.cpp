#include "model/parallel_linear.hpp"

#include <fmt/format.h>

#include "model/layers.hpp"

namespace shardmark {
namespace {

void all_reduce(Communicator& group, Tensor const& tensor, Context& context, char const* purpose) {
  if (group.size() == 1) return;
  group.post(context.stream, Exchange{.what = Collective::all_reduce, .send = tensor, .recv = tensor, .purpose = purpose})
      .wait(context.stream);
}

Tensor input_gradient(ParamId weight, Tensor const& dy, Context& context) {
  View const w = context.store.weight(weight, context.version);
  Tensor dx = rows_by(context, dy, w.shape[1]);
  context.run(Matmul{.a = dy.view, .b = w, .c = dx.view, .bias = {}, .aux = {}});
  return dx;
}

void weight_gradients(ParamId weight, ParamId bias, View const& dy, View const& x, Context& context) {
  auto& store = context.store;
  context.run(Matmul{.a = dy,
                     .b = x,
                     .c = store.gradient(weight, 1, 0),
                     .ta = Transpose::yes,
                     .write = store.gradient_write(weight, 0),
                     .bias = {},
                     .aux = {}});
  context.run(ColumnSum{dy, store.gradient(bias, 1, 0), store.gradient_write(bias, 0)});
}

}  // namespace

Tensor ColumnParallelLinear::forward(Tensor x, Context& context, Stash& stash) {
  View const w = context.store.weight(weight_, context.version);
  Tensor y = rows_by(context, x, w.shape[0]);
  context.run(Matmul{.a = x.view,
                     .b = w,
                     .c = y.view,
                     .tb = Transpose::yes,
                     .epilogue = Epilogue::bias,
                     .bias = context.store.weight(bias_, context.version),
                     .aux = {}});
  stash.save(first_, x, Until::weight);
  return y;
}

Tensor ColumnParallelLinear::backward(Tensor dy, Context& context, Stash& stash, Wanted wanted) {
  Tensor dx;
  if (wants_input(wanted)) {
    dx = input_gradient(weight_, dy, context);
    all_reduce(group_, dx, context, "column input gradient");
    if (!wants_weight(wanted)) stash.save(first_ + 1, dy, Until::weight);
  }
  if (wants_weight(wanted))
    weight_gradients(weight_, bias_, wants_input(wanted) ? dy.view : stash[first_ + 1].view, stash[first_].view, context);
  return dx;
}

Tensor RowParallelLinear::forward(Tensor x, Context& context, Stash& stash) {
  View const w = context.store.weight(weight_, context.version);
  Tensor y = rows_by(context, x, w.shape[0]);
  Matmul product{.a = x.view, .b = w, .c = y.view, .tb = Transpose::yes, .bias = {}, .aux = {}};
  if (group_.rank() == 0) {
    product.epilogue = Epilogue::bias;
    product.bias = context.store.weight(bias_, context.version);
  }
  context.run(product);
  all_reduce(group_, y, context, "row output");
  stash.save(first_, x, Until::weight);
  return y;
}

Tensor RowParallelLinear::backward(Tensor dy, Context& context, Stash& stash, Wanted wanted) {
  Tensor dx;
  if (wants_input(wanted)) {
    dx = input_gradient(weight_, dy, context);
    if (!wants_weight(wanted)) stash.save(first_ + 1, dy, Until::weight);
  }
  if (wants_weight(wanted))
    weight_gradients(weight_, bias_, wants_input(wanted) ? dy.view : stash[first_ + 1].view, stash[first_].view, context);
  return dx;
}

Slice even_slice(int dim, std::int64_t n, int size, int rank, std::string const& what) {
  if (n % size != 0) {
    std::string divisors;
    for (std::int64_t d = 1; d <= n && d <= 64; ++d)
      if (n % d == 0) divisors += fmt::format("{}{}", divisors.empty() ? "" : ", ", d);
    fail_input({fmt::format("{} {} can't be split over {} ranks", n, what, size), "it isn't divisible", "choose one of " + divisors});
  }
  return {dim, n / size * rank, n / size * (rank + 1)};
}

}  // namespace shardmark
