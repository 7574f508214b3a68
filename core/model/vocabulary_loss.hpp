#pragma once
// Softmax cross-entropy where the vocabulary is cut over the tensor-parallel group (Shoeybi et al. 2019, section 3).

#include "model/tensor_group.hpp"

namespace shardmark {

/// As CrossEntropyLoss, of logits whose columns are this part's of `vocabulary` (TensorPart::nearly_even). No rank sees the others' logits:
/// each gathers four numbers a row from all, {sum of exponentials, highest, the target's logit, its place}, and finishes its own columns.
/// A ring sends (t - 1) 4 T numbers of the accumulator's type from each rank, where whole logits would be (t - 1)/t V T.
/// Each part adds the whole loss to its tally. Slices differ by one column at most, so there is no padding that could enter (case 46).
class VocabularyLoss final : public Layer {
 public:
  static constexpr std::size_t slots = 1;  // dlogits (input)
  VocabularyLoss(std::int64_t vocabulary, std::size_t first_slot) : vocabulary_(vocabulary), first_(first_slot) {}
  Tensor forward(Tensor logits, Context& context, Stash& stash) override;
  Tensor backward(Tensor dy, Context& context, Stash& stash, Wanted wanted) override;

 private:
  Tensor part(View const& logits, Range columns, View const& target, Context& context) const;
  std::int64_t vocabulary_;
  std::size_t first_;
};

}  // namespace shardmark
