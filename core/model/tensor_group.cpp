#include "model/tensor_group.hpp"

#include <chrono>

namespace shardmark {
namespace {

/// [parts, n] as [parts, ...] of `one`, a matrix.
View stacked(View const& all, View const& one) { return reshape(all, {all.shape[0], one.shape[0], one.shape[1]}); }
/// Room for another number of rows.
Tensor rows_like(Context& context, Tensor const& like, std::int64_t rows) {
  return context.make(like.view.dtype, {rows, like.view.shape[1]});
}

}  // namespace

void TensorGroup::wait(Request request, Context& context) {
  auto const before = std::chrono::steady_clock::now();
  request.wait(context.stream);
  waiting_seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count();
}

Tensor LocalTensorGroup::sum(std::span<Tensor const> mine, Context& context, std::string_view) {
  expect(int(mine.size()) == parts_, "each part gives one summand");
  if (parts_ == 1) return mine[0];
  std::vector<View> views;
  for (Tensor const& part : mine) views.push_back(reshape(part.view, {part.view.elements()}));
  context.run(SumTree{views, views[0]});
  return mine[0];
}

Tensor LocalTensorGroup::gather(std::span<Tensor const> mine, Context& context, std::string_view) {
  expect(int(mine.size()) == parts_, "each part gives one tensor");
  std::int64_t const n = mine[0].view.elements();
  Tensor all = context.make(mine[0].view.dtype, {parts_, n});
  for (int p = 0; p < parts_; ++p) context.run(Copy{reshape(mine[std::size_t(p)].view, {1, n}), piece(all.view, 0, p, parts_)});
  return with_view(all, stacked(all.view, mine[0].view));
}

Request RankTensorGroup::start_sum(Tensor const& mine, Tensor const& result, TokenRows rows, Context& context, std::string_view purpose) {
  Collective const what = rows == TokenRows::cut ? Collective::reduce_scatter : Collective::all_reduce;
  return group_.post(context.stream, Exchange{.what = what, .send = mine, .recv = result, .reduction = reduction_, .purpose = purpose});
}

Tensor RankTensorGroup::sum(std::span<Tensor const> mine, Context& context, std::string_view purpose) {
  expect(mine.size() == 1, "a rank has one part");
  if (group_.size() > 1) wait(start_sum(mine[0], mine[0], TokenRows::whole, context, purpose), context);
  return mine[0];
}

Tensor RankTensorGroup::gather(std::span<Tensor const> mine, Context& context, std::string_view purpose) {
  expect(mine.size() == 1, "a rank has one part");
  Tensor const all = context.make(mine[0].view.dtype, {group_.size(), mine[0].view.elements()});
  wait(group_.post(context.stream, Exchange{.what = Collective::all_gather, .send = mine[0], .recv = all, .purpose = purpose}), context);
  return with_view(all, stacked(all.view, mine[0].view));
}

Tensor RankTensorGroup::all_rows(Tensor const& mine, Context& context, std::string_view purpose) {
  if (group_.size() == 1) return mine;
  Tensor all = rows_like(context, mine, mine.view.shape[0] * group_.size());
  wait(group_.post(context.stream, Exchange{.what = Collective::all_gather, .send = mine, .recv = all, .purpose = purpose}), context);
  return all;
}

Tensor RankTensorGroup::sum_of_rows(std::span<Tensor const> mine, Context& context, std::string_view purpose) {
  expect(mine.size() == 1, "a rank has one part");
  if (group_.size() == 1) return mine[0];
  expect(mine[0].view.shape[0] % group_.size() == 0, "rows are cut into equal runs");
  Tensor own = rows_like(context, mine[0], mine[0].view.shape[0] / group_.size());
  wait(start_sum(mine[0], own, TokenRows::cut, context, purpose), context);
  return own;
}

}  // namespace shardmark
