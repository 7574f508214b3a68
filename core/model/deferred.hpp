#pragma once
// Deferred running statistics: those of batch normalisation move once an update, by the moments (n, mean, M2) of all its micro-batches,
// merged by their counts (Chan, Golub and LeVeque 1979). Each micro-batch has a row of its own and the merge is in ascending order, so
// that any order of arrival gives the same bits.

#include "model/layer.hpp"

namespace shardmark {

class DeferredStatistics {
 public:
  /// @param store    outlives this; its rank's running statistics are moved
  /// @param leaves   of an update: the micro-batches of the first replica are those that count (inner of outer x inner)
  /// @param updates  whose micro-batches are forwarded before the first of them is decided: 1 with a flush
  DeferredStatistics(ParameterStore& store, SumShape leaves, int updates, Backend& ops, Arena& arena, Stream& stream);

  /// The context's micro-batch, once. @param moments  f64 [1 + 2C]; n = 0: it had no samples, and changes nothing
  void put(RunningBuffers const& running, Tensor const& moments, Context& context);
  /// Moves all of this rank by the micro-batches of `update` (from 0), each of which has been put.
  void move(std::int64_t update);

 private:
  struct Entry {
    RunningBuffers running;
    Tensor rows;               // [updates x micro-batches, 1 + 2C]
    Tensor merged;             // [1 + 2C]
    Tensor mean, rstd;         // what the merge writes besides; not used
    std::vector<bool> filled;  // by row
  };
  std::int64_t row_of(std::int64_t update, std::int64_t micro) const { return update % updates_ * leaves_.inner + micro; }

  ParameterStore& store_;
  SumShape leaves_;
  int updates_;
  Backend& ops_;
  Stream& stream_;
  std::vector<Entry> entries_;
};

}  // namespace shardmark
