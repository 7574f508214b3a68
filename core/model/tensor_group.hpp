#pragma once
// The tensor-parallel group: layers are cut into parts, and some results are sums over the parts. A rank has one part. A serial twin has
// all of them in one process and adds them as the ranks do, so that both come to the same bits.

#include <span>
#include <string_view>
#include <vector>

#include "base/mutant.hpp"
#include "comm/communicator.hpp"
#include "model/layer.hpp"

namespace shardmark {

class TensorGroup {
 public:
  virtual ~TensorGroup() = default;
  /// Of all parts, the first that this process has, and how many it has.
  virtual int first() const = 0;
  virtual int here() const = 0;
  /// Parts on other ranks take part in sums.
  virtual bool spans_ranks() const = 0;
  /// Sum over all parts, in part order by the fixed tree (or as the library does, if the job says so). In place: the result is in the
  /// memory of the first. @param mine one tensor for each part that is here, of one shape
  virtual Tensor sum(std::span<Tensor const> mine, Context& context, std::string_view purpose) = 0;
};

/// All parts in one process: a serial twin, or layers that aren't cut (one part).
class LocalTensorGroup final : public TensorGroup {
 public:
  explicit LocalTensorGroup(int parts) : parts_(parts) {}
  int first() const override { return 0; }
  int here() const override { return parts_; }
  bool spans_ranks() const override { return false; }
  Tensor sum(std::span<Tensor const> mine, Context& context, std::string_view purpose) override;

 private:
  int parts_;
};

/// One part on each rank.
class RankTensorGroup final : public TensorGroup {
 public:
  /// @param group outlives this
  RankTensorGroup(Communicator& group, Reduction reduction) : group_(group), reduction_(reduction) {}
  int first() const override { return group_.rank(); }
  int here() const override { return 1; }
  bool spans_ranks() const override { return group_.size() > 1; }
  Tensor sum(std::span<Tensor const> mine, Context& context, std::string_view purpose) override;

 private:
  Communicator& group_;
  Reduction reduction_;
};

/// The sum over all parts of partial(p), p counting the parts of this process from 0. A rank has one, and allocates nothing on the heap.
template <class Partial>
Tensor sum_of_parts(Context& context, std::string_view purpose, Partial&& partial) {
  int const here = context.tensor.here();
  if (here == 1) {
    Tensor const mine = partial(0);
    return context.tensor.sum({&mine, 1}, context, purpose);
  }
  std::vector<Tensor> all;
  for (int p = 0; p < here; ++p) all.push_back(partial(p));
  return context.tensor.sum(all, context, purpose);
}

/// mutant(name), but for processes that have all parts: the serial twin runs the same layers and stays right.
inline bool tensor_mutant(Context const& context, std::string_view name) { return context.tensor.spans_ranks() && mutant(name); }

}  // namespace shardmark
