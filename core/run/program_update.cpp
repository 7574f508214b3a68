// The end of a window: tied weights, the one decision, the update.

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/mutant.hpp"
#include "run/pipeline_mutant.hpp"
#include "run/program.hpp"

namespace shardmark {

/// Slots in ascending order, once: from the exchange among the holders, or all from here.
void Program::tie(UnitId unit) {
  UnitSpec const& spec = parts_.model.spec[unit];
  auto const exchanged = std::find_if(tied_.begin(), tied_.end(), [&](auto const& t) { return t.first == unit; });
  slots_.clear();
  for (int slot = 0; slot < spec.slots; ++slot) {
    if (exchanged == tied_.end())
      slots_.push_back(store_.gradients().own({unit, slot}));
    else
      slots_.push_back(reshape(slice(exchanged->second.view, 0, slot, slot + 1), {spec.elements}));
  }
  parts_.ops.run(*compute_, SumTree{slots_, store_.gradients().own(store_.gradients().summed(unit))});
  if (exchanged != tied_.end()) tied_.erase(exchanged);
}

/// Deferred running statistics move here, also with an update that is skipped: others have moved by then too.
void Program::decide() {
  if (deferred_) deferred_->move(window_);
  if (under_way_) {
    take_part();
  } else {
    reduce_tally();
    take_norms();
  }
  auto const before = std::chrono::steady_clock::now();
  if (!under_way_) exchange_totals();
  sum_up_totals();
  deciding_seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count();
  std::int64_t const next =
      window_ - (mutant("resume_with_first_learning_rate") ? parts_.updates_before : 0);  // 0-based index of this update
  parts_.ops.run(*compute_, Decide{norm_squared_.view, slice(totals_.view, 0, 0, 4), scalars_.view, parts_.optimizer.clip_norm,
                                   parts_.optimizer.rate.at(next)});
  store_.gradients().restart();
  conclude_window();
  ++window_;
}

/// Losses go through the same tree as the gradients (validation rule 8).
void Program::reduce_tally() {
  tally_tree_.reset();
  auto const row = [&](int leaf) { return reshape(slice(tallies_.view, 0, leaf, leaf + 1), {3}); };
  for (int leaf = 0; leaf < parts_.schedule.leaves.leaves(); ++leaf)
    tally_tree_.arrive(leaf, [&](int into, int from) {
      std::array<View, 2> const in{row(into), row(from)};
      parts_.ops.run(*compute_, SumTree{in, in[0]});
    });
  parts_.ops.run(*compute_, Fill{totals_.view, 0});
  parts_.ops.run(*compute_, Copy{row(0), slice(totals_.view, 0, 0, 3)});
  parts_.ops.run(*compute_, Fill{tallies_.view, 0});  // micro-batches of the next window may arrive before its first forward
  if (stop_asked_) parts_.ops.run(*compute_, Fill{slice(totals_.view, 0, 4, 5), 1});
}

/// With Sharing::root rank 0 alone has them, and updates.
bool Program::has_sums() const {
  Shards const& shards = store_.config().shards;
  return shards.sharing != Sharing::root || shards.mine == 0;
}

/// Squares per tensor by rule 13: leaves on the tensor's flat index, a tree over leaves; tied weights once.
void Program::take_norms() {
  parts_.ops.run(*compute_, Fill{norms_.view, 0});
  if (!has_sums()) return;
  if (shared_norms_) shared_norms_->take();
  std::int64_t at = 0;
  for (UnitId unit : store_.held()) {
    for (ParamId id : parts_.model.spec[unit].params) {
      ParamSpec const& p = parts_.model.spec[id];
      View const sum = store_.gradients().own(store_.gradients().summed(unit));
      if (tensor_->here() > 1 && p.slice.dim >= 0) {
        take_norm_of_parts(id, slice(sum, 0, p.offset, p.offset + p.elements()));
        continue;
      }
      std::int64_t const count = norm_leaves(p.elements());
      View const leaves = slice(leaves_.view, 0, at, at + count);
      if (!shared_norms_) parts_.ops.run(*compute_, NormLeaves{slice(sum, 0, p.offset, p.offset + p.elements()), leaves});
      parts_.ops.run(*compute_, TreeTotal{leaves, slice(norms_.view, 0, id.v, id.v + 1)});
      at += count;
    }
  }
}

/// A tied weight is counted where its first use lives.
void Program::leave_tied_copies_out() {
  auto const& order = store_.gradients().order();
  for (UnitId unit : store_.held())
    for (ParamId id : parts_.model.spec[unit].params) {
      bool const owner = std::find(order.begin(), order.end(), Segment{unit, 0}) != order.end();
      if (!owner) parts_.ops.run(*compute_, Fill{slice(norms_.view, 0, id.v, id.v + 1), 0});
    }
}

void Program::all_sum(Axes over, Tensor const& tensor) {
  parts_.mesh.over(over)
      .post(*compute_, Exchange{.what = Collective::all_reduce, .send = tensor, .recv = tensor, .purpose = "decision"})
      .wait(*compute_);
}

/// totals: loss sum, counted, correct, non-finite flags, stop flags. Stages add them and their tensors' norms (zeros elsewhere, so the sum
/// is exact).
void Program::exchange_totals() {
  if (parts_.mesh.extent(Axis::pipeline) == 1 || !parts_.schedule.decides_jointly()) return;
  leave_tied_copies_out();
  all_sum(axes(Axis::pipeline), norms_);
  if (!pipeline_mutant(parts_.schedule, "loss_stays_on_the_last_stage")) all_sum(axes(Axis::pipeline), totals_);
}

/// What all stages have given to this decision: the same numbers on each.
void Program::take_part() {
  View const part = under_way_->part(window_).view;
  std::int64_t const norms = norms_.view.elements();
  parts_.ops.run(*compute_, Copy{slice(part, 0, 0, norms), norms_.view});
  parts_.ops.run(*compute_, Copy{slice(part, 0, norms, part.elements()), totals_.view});
  if (pipeline_mutant(parts_.schedule, "norm_of_the_own_stage")) take_norms();
}

/// Parts of cut tensors are added; losses are known to all parts, a request to stop isn't. Replicas add losses and flags.
void Program::sum_up_totals() {
  if (tensor_->spans_ranks()) {
    add_norms_of_parts();
    all_sum(axes(Axis::tensor), with_view(totals_, slice(totals_.view, 0, 4, 5)));
  }
  // Zeros but on rank 0, so the sum is exact.
  if (parts_.schedule.sharing == Sharing::root) all_sum(parts_.schedule.reduced_over, norms_);
  parts_.ops.run(*compute_, TreeTotal{norms_.view, norm_squared_.view});
  if (pipeline_mutant(parts_.schedule, "norm_of_the_update_before") && last_.update > 0)
    parts_.ops.run(*compute_, Fill{norm_squared_.view, last_.norm * last_.norm});
  parts_.ops.run(*compute_, FlagNonFinite{norm_squared_.view, slice(totals_.view, 0, 3, 4)});
  if (parts_.mesh.extent(Axis::data) > 1) all_sum(axes(Axis::data), totals_);
}

void Program::conclude_window() {
  last_ = {};
  last_.update = window_ + 1;
  if (parts_.values == Values::real) {
    compute_->synchronize();
    double const* s = scalars_.view.as<double>();
    auto const at = [&](Scalar which) { return s[std::size_t(which)]; };
    last_.loss = at(Scalar::loss);
    last_.norm = at(Scalar::norm);
    last_.rate = at(Scalar::learning_rate);
    last_.counted = std::llround(at(Scalar::counted));  // exact, but for runs that are perturbed on purpose
    last_.skipped = at(Scalar::skip) != 0;
    last_.stop = totals_.view.as<double>()[4] != 0;
    std::int64_t const expected = window_counted_[std::size_t(window_) % window_counted_.size()];
    if (sees_loss() && last_.counted != expected)
      throw RankFailure(
          fmt::format("update {}: {} loss terms were counted where the window has {} (a micro-batch is missing or taken twice)",
                      last_.update, last_.counted, expected));
  }
  if (last_.skipped && !parts_.schedule.decides_jointly())
    throw RankFailure(
        fmt::format("update {}: a gradient is not finite, and other stages have gone on; stages that decide by themselves can't skip an "
                    "update (lower --lr, give --clip-norm with --mode vertical or 2bw, or use --mode flush)",
                    last_.update));
  history_.push_back(last_);
}

bool Program::sees_loss() const { return parts_.schedule.decides_jointly() || blocks_.back().v + 1 == int(parts_.model.blocks.size()); }

void Program::update(UnitId unit, Version to) {
  Version const from{to.v - 1};
  Range const own = store_.own_range(unit);
  if (mutants_built) keep_old_weights(unit);
  View const weight = store_.own(Part::master, unit, from);
  store_.publish(unit, to, *compute_);
  View const out = store_.own(Part::master, unit, to);
  View compute = store_.own(Part::compute, unit, to);
  if (compute.data == out.data) compute = {};
  View gradient = store_.gradients().own(store_.gradients().summed(unit));
  if (mutants_built) shift_shard(gradient);
  std::int64_t const decay_to = std::clamp<std::int64_t>(parts_.model.spec[unit].decaying - own.begin, 0, own.size());
  OptimizerSettings const& o = parts_.optimizer;
  if (o.rule == Rule::sgd)
    parts_.ops.run(*compute_, SgdUpdate{.weight = weight,
                                        .gradient = gradient,
                                        .momentum = store_.own(Part::state0, unit, to),
                                        .out = out,
                                        .compute = compute,
                                        .scalars = scalars_.view,
                                        .factor = o.momentum,
                                        .decay = o.weight_decay,
                                        .nesterov = o.form == Momentum::nesterov,
                                        .decay_from = 0,
                                        .decay_to = decay_to});
  else
    parts_.ops.run(*compute_, AdamWUpdate{.weight = weight,
                                          .gradient = gradient,
                                          .first = store_.own(Part::state0, unit, to),
                                          .second = store_.own(Part::state1, unit, to),
                                          .out = out,
                                          .compute = compute,
                                          .scalars = scalars_.view,
                                          .beta1 = o.beta1,
                                          .beta2 = o.beta2,
                                          .epsilon = o.epsilon,
                                          .decay = o.weight_decay,
                                          .decay_from = 0,
                                          .decay_to = decay_to});
}

/// Fault: the piece of the gradient begins one element behind that of the weights.
void Program::shift_shard(View& gradient) const {
  if (!mutant("optimizer_shard_off_by_one") || store_.config().shards.count == 1) return;
  for (std::int64_t i = 0; i + 1 < gradient.elements() && parts_.values == Values::real; ++i)
    parts_.ops.run(*compute_, Copy{slice(gradient, 0, i + 1, i + 2), slice(gradient, 0, i, i + 1)});
}

void Program::make_replicas_equal() {
  Communicator& replicas = parts_.mesh.over(axes(Axis::data));
  if (replicas.size() == 1 || store_.config().shards.cut_weights()) return;
  if (store_.config().shards.sharing != Sharing::replicated) return gather_units(store_.held());
  for (UnitId unit : store_.held())
    for (Part part : {Part::compute, Part::master}) {
      View const flat = store_.flat(part, unit, store_.latest(unit));
      if (part == Part::master && flat.data == store_.flat(Part::compute, unit, store_.latest(unit)).data) continue;
      // The store keeps the memory; this tensor only names it for the exchange.
      Tensor const tensor{Storage(std::shared_ptr<void>(), flat.region), flat};
      replicas.post(*compute_, Exchange{.what = Collective::broadcast, .send = tensor, .recv = tensor, .purpose = "initial weights"})
          .wait(*compute_);
    }
}

/// Bit for bit, in canonical order.
template <class Wanted>
std::uint64_t Program::hash_of(Wanted&& wanted) {
  std::uint64_t h = 14695981039346656037ull;
  bool const cut = store_.config().shards.cut_weights();
  Part const part = parts_.schedule.sharing == Sharing::replicated ? Part::master : Part::compute;
  for (UnitId unit : store_.held()) {
    if (cut) gather_units({unit});
    compute_->synchronize();
    View const flat = store_.flat(part, unit, store_.latest(unit));
    for (ParamId id : parts_.model.spec[unit].params) {
      ParamSpec const& p = parts_.model.spec[id];
      if (!wanted(p)) continue;
      std::byte const* const at = flat.data + std::size_t(p.offset) * width(flat.dtype);
      std::size_t const bytes = std::size_t(p.elements()) * width(flat.dtype);
      for (std::size_t i = 0; i < bytes; ++i) h = (h ^ std::uint64_t(at[i])) * 1099511628211ull;
    }
    if (cut) store_.drop_gathered(unit);
  }
  return h;
}

std::uint64_t Program::weights_hash() {
  return hash_of([](ParamSpec const&) { return true; });
}

std::uint64_t Program::copies_hash() {
  return hash_of([](ParamSpec const& p) { return (p.replicated & axes(Axis::tensor)) != 0; });
}

}  // namespace shardmark
