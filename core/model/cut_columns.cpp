#include "model/cut_columns.hpp"

namespace shardmark {
namespace {

Tensor all_columns(Tensor const& mine, Context& context, std::string_view purpose) {
  TensorGroup& group = context.tensor;
  if (!group.spans_ranks()) return mine;
  std::int64_t const rows = mine.view.shape[0], columns = mine.view.shape[1];
  Tensor const parts = group.gather({&mine, 1}, context, purpose);
  Tensor all = context.make(mine.view.dtype, {rows, group.parts() * columns});
  for (int p = 0; p < group.parts(); ++p)
    context.run(Copy{reshape(piece(parts.view, 0, p, group.parts()), {rows, columns}), piece(all.view, 1, p, group.parts())});
  return all;
}

Tensor own_columns(Tensor const& all, Context& context) {
  TensorGroup const& group = context.tensor;
  if (!group.spans_ranks()) return all;
  View const own = piece(all.view, 1, group.first(), group.parts());
  Tensor mine = context.make(own.dtype, {own.shape[0], own.shape[1]});
  context.run(Copy{own, mine.view});
  return mine;
}

}  // namespace

Tensor GatherColumns::forward(Tensor x, Context& context, Stash&) { return all_columns(x, context, "column output"); }

Tensor GatherColumns::backward(Tensor dy, Context& context, Stash&, Wanted wanted) {
  return wants_input(wanted) ? own_columns(dy, context) : Tensor{};
}

Tensor ScatterColumns::forward(Tensor x, Context& context, Stash&) { return own_columns(x, context); }

Tensor ScatterColumns::backward(Tensor dy, Context& context, Stash&, Wanted wanted) {
  return wants_input(wanted) ? all_columns(dy, context, "row input gradient") : Tensor{};
}

}  // namespace shardmark
