#pragma once
// What ZeRO costs a rank (Rajbhandari et al., SC 2020), in elements, the padding of units counted.

#include <cstdint>
#include <vector>

#include "schedule/schedule.hpp"

namespace shardmark {

/// n ranks, m micro-batches; P parameters (a tied one counts once for each use where gradients are meant). Per update:
///
///                 reduce-scattered   gathered                          kept: weights  updated  sums
///   replicated    -                  -                                       P        P        P
///   optimizer     P                  P                                       P        P/n      P
///   gradients     m P                P                                       P        P/n      P/n
///   parameters    m P                2m P - m P_last - (m-1) P_first         P/n      P/n      P/n
///
/// A rank sends (n-1)/n of what is scattered or gathered. With parameters shared the paper has 3m (n-1)/n P: each block is gathered for
/// its forward and again for its backward. The last block's backward follows its forward, and the next micro-batch begins with the block
/// that the one before ended with: there the weights are still here.
struct SharingForms {
  std::int64_t reductions = 0, reduced = 0;  // reduce-scatters, and elements of the arrays that go into them
  std::int64_t gathers = 0, gathered = 0;    // all-gathers of weights, and elements of the arrays that come out
  std::int64_t weights = 0;                  // kept all the time
  std::int64_t updated = 0;                  // that this rank updates: of master weights and of each tensor of optimizer state
  std::int64_t sums = 0;                     // of gradients: one sum; a tree over micro-batches has up to floor(log2 m) + 1
  /// Of an array over all ranks, what one rank sends.
  static std::int64_t sent(std::int64_t elements, int ranks) { return elements / ranks * (ranks - 1); }
};

SharingForms sharing_forms(Sharing sharing, std::vector<BlockShape> const& blocks, int ranks, int micros);

}  // namespace shardmark
