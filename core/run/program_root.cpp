// The centralised way (Sharing::root): rank 0 has every rank's gradients, adds them, and hands out weights.

#include <algorithm>

#include "base/mutant.hpp"
#include "run/program.hpp"

namespace shardmark {

/// A bucket of every rank, on rank 0.
Request Program::post_to_root(Posting const& posting) {
  Bucket const& bucket = parts_.schedule.buckets[std::size_t(parts_.lane)][std::size_t(posting.bucket.v)];
  Communicator& replicas = parts_.mesh.over(posting.axes);
  Tensor const mine = store_.gradients().range(bucket.segments.front(), bucket.segments.back());
  Exchange gather{.what = Collective::gather, .send = mine, .recv = {}, .purpose = "gradients"};
  if (replicas.rank() == 0) {
    gather.recv = parts_.arena.make(mine.view.dtype, {replicas.size(), mine.view.elements()}, Book::communication, *compute_);
    gathered_.push_back({posting.token, gather.recv, mine});
  }
  ++reductions_;
  return replicas.post(*compute_, gather);
}

/// By the tree over ranks, which an all-reduce in fixed order takes too.
void Program::sum_at_root(Token token) {
  auto const at = std::find_if(gathered_.begin(), gathered_.end(), [&](Gathered const& g) { return g.token == token; });
  if (at == gathered_.end()) return;
  View const all = at->all.view;
  std::int64_t const elements = at->sum.view.elements();
  slots_.clear();
  for (std::int64_t rank = 0; rank < all.shape[0]; ++rank) slots_.push_back(reshape(slice(all, 0, rank, rank + 1), {elements}));
  if (mutant("root_drops_last_rank") && slots_.size() > 1) parts_.ops.run(*compute_, Fill{slots_.back(), 0});
  parts_.ops.run(*compute_, SumTree{slots_, at->sum.view});
  gathered_.erase(at);
}

/// The latest weights of a unit, in the type in which they are used.
Request Program::post_from_root(UnitId unit, Axes over) {
  Tensor weights = store_.gather(unit, *compute_).whole;
  if (mutant("root_sends_old_weights") && stale_) weights = stale_;
  Exchange const sent{.what = Collective::broadcast, .send = weights, .recv = weights, .purpose = "weights"};
  if (mutant("root_sends_twice")) parts_.mesh.over(over).post(*compute_, sent).wait(*compute_);
  return parts_.mesh.over(over).post(*compute_, sent);
}

/// Fault "root_sends_old_weights": those from before the update that comes.
void Program::keep_old_weights(UnitId unit) {
  if (!mutant("root_sends_old_weights") || parts_.schedule.sharing != Sharing::root || !has_sums()) return;
  View const weights = store_.flat(Part::compute, unit, store_.latest(unit));
  stale_ = parts_.arena.make(weights.dtype, {weights.elements()}, Book::workspace, *compute_);
  parts_.ops.run(*compute_, Copy{weights, stale_.view});
}

/// Fault "worker_updates_too": what rank 0 has sent is updated once more, by this rank's own gradients.
void Program::update_received(Token token) {
  if (!mutant("worker_updates_too") || parts_.schedule.sharing != Sharing::root || has_sums()) return;
  for (Posting const& posting : postings_of(lane_, token)) {
    if (!posting.unit.valid()) continue;
    View const weights = store_.flat(Part::compute, posting.unit, store_.latest(posting.unit));
    View const gradient = store_.gradients().total(store_.gradients().summed(posting.unit));
    parts_.ops.run(*compute_, SgdUpdate{.weight = weights,
                                        .gradient = gradient,
                                        .momentum = {},
                                        .out = weights,
                                        .compute = {},
                                        .scalars = scalars_.view,
                                        .factor = 0,
                                        .decay = 0,
                                        .nesterov = false,
                                        .decay_from = 0,
                                        .decay_to = 0});
  }
}

}  // namespace shardmark
