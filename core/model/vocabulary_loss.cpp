#include "model/vocabulary_loss.hpp"

namespace shardmark {

/// @param columns of the vocabulary, those of `logits`
Tensor VocabularyLoss::part(View const& logits, Range columns, View const& target, Context& context) const {
  Tensor out = context.make(accumulator(logits.dtype), {logits.shape[0], softmax_part_size});
  context.run(SoftmaxPart{logits, target, out.view, columns.begin});
  return out;
}

Tensor VocabularyLoss::forward(Tensor logits, Context& context, Stash& stash) {
  TensorGroup& group = context.tensor;
  View const target = reshape(context.micro.target.view, {context.micro.target.view.elements()});
  auto const columns = [&](int p) { return piece_of(vocabulary_, group.parts(), group.first() + p); };
  std::int64_t const first = columns(0).begin;
  Tensor const parts = gather_parts(context, "softmax of vocabulary slices", [&](int p) {
    Range const own = columns(p);
    return part(slice(logits.view, 1, own.begin - first, own.end - first), own, target, context);
  });
  bool const train = context.pass != Pass::evaluate;
  context.run(SlicedCrossEntropy{logits.view, target, parts.view, context.micro.tally.view, train ? logits.view : View{}, first,
                                 context.micro.scale});
  if (train) stash.save(first_, logits, Until::input);
  return logits;
}

Tensor VocabularyLoss::backward(Tensor, Context&, Stash& stash, Wanted wanted) {
  return wants_input(wanted) ? stash.take(first_) : Tensor{};
}

}  // namespace shardmark
