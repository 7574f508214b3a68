#include "model/tensor_group.hpp"

namespace shardmark {

Tensor LocalTensorGroup::sum(std::span<Tensor const> mine, Context& context, std::string_view) {
  expect(int(mine.size()) == parts_, "each part gives one summand");
  if (parts_ == 1) return mine[0];
  std::vector<View> views;
  for (Tensor const& part : mine) views.push_back(reshape(part.view, {part.view.elements()}));
  context.run(SumTree{views, views[0]});
  return mine[0];
}

Tensor RankTensorGroup::sum(std::span<Tensor const> mine, Context& context, std::string_view purpose) {
  expect(mine.size() == 1, "a rank has one part");
  if (group_.size() == 1) return mine[0];
  Exchange const all{.what = Collective::all_reduce, .send = mine[0], .recv = mine[0], .reduction = reduction_, .purpose = purpose};
  group_.post(context.stream, all).wait(context.stream);
  return mine[0];
}

}  // namespace shardmark
