#pragma once
// Softmax cross-entropy over slices of the vocabulary. Parts are merged as the reference merges them: they are few.

#include "backend/cpu/run.hpp"
#include "backend/reference/loops_sliced_loss.hpp"

namespace shardmark::cpu {

template <class T>
void run(Kernels<T> const& k, Stream& stream, SoftmaxPart const& o) {
  using Sum = Accumulator<T>;
  std::int64_t const n = columns_of(o.logits);
  each_row_index(rows_of(o.logits), n, stream, [&](std::int64_t r) {
    std::int64_t const target = reference::target_column(o.target, r, o.first, n);
    RowPart const part = k.softmax_part(row<T>(o.logits, r), target, n);
    Sum* const out = o.part.as<Sum>() + r * softmax_part_size;
    out[0] = Sum(part.sum);
    out[1] = n == 0 ? Sum(std::numeric_limits<float>::lowest()) : Sum(part.highest);
    out[2] = Sum(part.wanted);
    out[3] = Sum(target < 0 ? reference::elsewhere : part.target_first ? reference::here_and_highest : reference::here);
  });
}

template <class T>
void run(Kernels<T> const& k, Stream& stream, SlicedCrossEntropy const& o) {
  using Sum = Accumulator<T>;
  std::int64_t const n = columns_of(o.logits);
  std::int32_t const* const target = o.target.as<std::int32_t>();
  double counted = 0, correct = 0;
  std::int64_t done = 0;
  auto row_loss = [&](std::int64_t r) {
    T* const dlogits = o.dlogits ? row<T>(o.dlogits, r) : nullptr;
    if ((done += n) >= piece) done = 0, stream.tick();
    if (target[r] == -1) {
      if (dlogits != nullptr) std::fill_n(dlogits, n, T(0));
      return 0.0;
    }
    reference::MergedRow const merged = reference::merge_row<Sum>(o.parts, r);
    if (dlogits != nullptr)
      k.softmax_gradient(row<T>(o.logits, r), reference::target_column(o.target, r, o.first, n), Sum(merged.highest), merged.sum, o.scale,
                         dlogits, n);
    counted += 1;
    correct += merged.correct ? 1 : 0;
    return merged.loss();
  };
  double const loss = reference::tree_sum<double>(rows_of(o.logits), row_loss);
  reference::add_tally(o.tally, loss, counted, correct);
}

}  // namespace shardmark::cpu
