#pragma once
// The tensor-parallel group: layers are cut into parts, and some results are sums over the parts. A rank has one part. A serial twin has
// all of them in one process and adds them as the ranks do, so that both come to the same bits.

#include <span>
#include <string_view>
#include <vector>

#include "base/mutant.hpp"
#include "base/ranges.hpp"
#include "comm/communicator.hpp"
#include "model/layer.hpp"
#include "model/tensor_part.hpp"

namespace shardmark {

class TensorGroup {
 public:
  virtual ~TensorGroup() = default;
  /// Of all parts, the first that this process has, and how many it has.
  virtual int first() const = 0;
  virtual int here() const = 0;
  /// How many there are.
  virtual int parts() const = 0;
  /// Parts on other ranks take part in sums.
  virtual bool spans_ranks() const = 0;
  /// Sum over all parts, in part order by the fixed tree (or as the library does, if the job says so). In place: the result is in the
  /// memory of the first. @param mine one tensor for each part that is here, of one shape
  virtual Tensor sum(std::span<Tensor const> mine, Context& context, std::string_view purpose) = 0;
  /// All parts' tensors [parts, ...], in part order. @param mine one for each part that is here, of one shape
  virtual Tensor gather(std::span<Tensor const> mine, Context& context, std::string_view purpose) = 0;
  /// Starts sum() of a rank's one tensor (TokenRows::cut: sum_of_rows()) into `result`; for groups that span ranks.
  virtual Request start_sum(Tensor const& mine, Tensor const& result, TokenRows rows, Context& context, std::string_view purpose) = 0;

  // Under sequence parallelism. A process that has all parts has all rows already.
  /// [T,N] of all rows, from the [T/parts,N] that are here.
  virtual Tensor all_rows(Tensor const& mine, Context& context, std::string_view purpose) = 0;
  /// sum(), of which this process gets the rows that are its own.
  virtual Tensor sum_of_rows(std::span<Tensor const> mine, Context& context, std::string_view purpose) = 0;

  /// Completes what start_sum() started, or any exchange of the group.
  void wait(Request request, Context& context);
  /// Seconds spent in wait() (host clock).
  double waiting_seconds() const { return waiting_seconds_; }

 private:
  double waiting_seconds_ = 0;
};

/// All parts in one process: a serial twin, or layers that aren't cut (one part).
class LocalTensorGroup final : public TensorGroup {
 public:
  explicit LocalTensorGroup(int parts) : parts_(parts) {}
  int first() const override { return 0; }
  int here() const override { return parts_; }
  int parts() const override { return parts_; }
  bool spans_ranks() const override { return false; }
  Tensor sum(std::span<Tensor const> mine, Context& context, std::string_view purpose) override;
  Tensor gather(std::span<Tensor const> mine, Context& context, std::string_view purpose) override;
  Request start_sum(Tensor const&, Tensor const&, TokenRows, Context&, std::string_view) override {
    expect(false, "one process has nothing to wait for");
    return {};
  }
  Tensor all_rows(Tensor const& mine, Context&, std::string_view) override { return mine; }
  Tensor sum_of_rows(std::span<Tensor const> mine, Context& context, std::string_view purpose) override {
    return sum(mine, context, purpose);
  }

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
  int parts() const override { return group_.size(); }
  bool spans_ranks() const override { return group_.size() > 1; }
  Tensor sum(std::span<Tensor const> mine, Context& context, std::string_view purpose) override;
  Tensor gather(std::span<Tensor const> mine, Context& context, std::string_view purpose) override;
  Request start_sum(Tensor const& mine, Tensor const& result, TokenRows rows, Context& context, std::string_view purpose) override;
  Tensor all_rows(Tensor const& mine, Context& context, std::string_view purpose) override;
  Tensor sum_of_rows(std::span<Tensor const> mine, Context& context, std::string_view purpose) override;

 private:
  Communicator& group_;
  Reduction reduction_;
};

/// use(one tensor for each part that is here, made by partial(p), p counting them from 0). A rank has one, and allocates nothing on the
/// heap.
template <class Partial, class Use>
Tensor from_parts(TensorGroup const& group, Partial&& partial, Use&& use) {
  if (group.here() == 1) {
    Tensor const mine = partial(0);
    return use(std::span<Tensor const>(&mine, 1));
  }
  std::vector<Tensor> all;
  for (int p = 0; p < group.here(); ++p) all.push_back(partial(p));
  return use(std::span<Tensor const>(all));
}
/// The sum over all parts of partial(p); of its rows, this process gets all or its own.
template <class Partial>
Tensor sum_of_parts(Context& context, std::string_view purpose, Partial&& partial, TokenRows rows = TokenRows::whole) {
  return from_parts(context.tensor, partial, [&](std::span<Tensor const> mine) {
    return rows == TokenRows::cut ? context.tensor.sum_of_rows(mine, context, purpose) : context.tensor.sum(mine, context, purpose);
  });
}
/// All parts' partial(p) [parts, ...].
template <class Partial>
Tensor gather_parts(Context& context, std::string_view purpose, Partial&& partial) {
  return from_parts(context.tensor, partial, [&](std::span<Tensor const> mine) { return context.tensor.gather(mine, context, purpose); });
}

/// Piece p of `pieces` of a dimension; they differ by one at most.
inline View piece(View const& whole, int dim, int p, int pieces) {
  Range const own = piece_of(whole.shape[std::size_t(dim)], pieces, p);
  return slice(whole, dim, own.begin, own.end);
}

/// mutant(name), but for processes that have all parts: the serial twin runs the same layers and stays right.
inline bool tensor_mutant(Context const& context, std::string_view name) { return context.tensor.spans_ranks() && mutant(name); }

}  // namespace shardmark
