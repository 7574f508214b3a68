#pragma once
// Statistics of the pieces of one micro-batch, which batch normalisation merges (validation rule 15). Between two halves of a block
// each piece puts its own and takes all, in the order of the pieces.

#include "comm/communicator.hpp"
#include "model/layer.hpp"

namespace shardmark {

class Pieces {
 public:
  virtual ~Pieces() = default;
  /// One piece's numbers, fp64 or the accumulator's type, [n].
  virtual void put(Tensor const& mine, Context& context) = 0;
  /// All pieces' numbers [pieces, n], in their order.
  virtual Tensor all(Context& context) = 0;
};

/// All pieces are put here, one after the other, before the first takes them: one piece that normalises itself, or all replicas of a
/// serial twin.
class LocalPieces final : public Pieces {
 public:
  explicit LocalPieces(int count) : count_(count) {}
  void put(Tensor const& mine, Context& context) override;
  Tensor all(Context& context) override;

 private:
  int count_, filled_ = 0, taken_ = 0;
  Tensor rows_;
};

/// One piece on each rank of a group.
class RankPieces final : public Pieces {
 public:
  /// @param group outlives this
  explicit RankPieces(Communicator& group) : group_(group) {}
  void put(Tensor const& mine, Context& context) override;
  Tensor all(Context& context) override;

 private:
  Communicator& group_;
  Tensor rows_;
  Request request_;
};

}  // namespace shardmark
