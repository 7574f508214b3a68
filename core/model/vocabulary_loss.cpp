#include "model/vocabulary_loss.hpp"

namespace shardmark {
namespace {

/// The fault: as if the last slice were padded to the width of the first, and zeros in the padding were logits.
Tensor padded(View const& logits, std::int64_t width, Context& context) {
  Tensor out = context.make(logits.dtype, {logits.shape[0], width});
  context.run(Fill{out.view, 0});
  context.run(Copy{logits, slice(out.view, 1, 0, logits.shape[1])});
  return out;
}

}  // namespace

/// @param columns of the vocabulary, those of `logits`
Tensor VocabularyLoss::part(View const& logits, Range columns, View const& target, Context& context) const {
  std::int64_t const widest = piece_of(vocabulary_, context.tensor.parts(), 0).size();
  if (tensor_mutant(context, "padding_not_masked") && columns.end == vocabulary_ && columns.size() < widest) {
    Tensor const wide = padded(logits, widest, context);
    return part(wide.view, {columns.begin, columns.begin + widest}, target, context);
  }
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
