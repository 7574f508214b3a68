// Forward and backward of one block and micro-batch.

#include <algorithm>

#include "base/mutant.hpp"
#include "run/pipeline_mutant.hpp"
#include "run/program.hpp"

namespace shardmark {

void Program::forward(Action const& action) {
  Block const& b = block(action.chunk);
  Live& live = micro(action.micro);
  for (UnitId u : b.reads) store_.pin(u, action.version);
  if (action.chunk == blocks_.front()) broadcast_buffers();
  Tensor x = action.chunk.v == 0 ? live.batch.input : boundaries_.take(action.chunk, action.micro, AtEdge::activation);
  Context c = context(live.batch, action.version, Pass::train);
  bool const stashes = action.keeps == Kept::stash || action.keeps == Kept::selective;
  if (action.keeps == Kept::input) boundaries_.put(action.chunk, action.micro, AtEdge::kept_input, x);
  Stash nothing(0, Keep::nothing);
  Stash& stash = stashes ? stashes_.open(action.chunk, action.micro, b.slots) : nothing;
  if (action.keeps == Kept::selective) stash.restrict(Keep::selective);
  Tensor y = b.body->forward(std::move(x), c, stash);
  if (b.merged == nullptr) return put_output(action, std::move(y));
  halfway_.push_back({action, std::move(y)});
  if (int(halfway_.size()) < parts_.abreast) return;
  for (Halfway& h : halfway_) {
    Context merged = context(micro(h.action.micro).batch, h.action.version, Pass::train);
    Stash& own = stashes ? stashes_.at(h.action.chunk, h.action.micro) : nothing;
    put_output(h.action, b.merged->forward(std::move(h.tensor), merged, own));
  }
  halfway_.clear();
}

void Program::put_output(Action const& action, Tensor y) {
  if (parts_.observer != nullptr) parts_.observer->see(action.micro, block(action.chunk).name, "output", y.view);
  ChunkId const next{action.chunk.v + 1};
  if (next.v < int(parts_.model.blocks.size())) boundaries_.put(next, action.micro, AtEdge::activation, std::move(y));
}

/// The forward once more. Its loss has been counted, running statistics have moved, and masks are functions of keys. Its output was where
/// it belongs: only a recomputation of the next block needs it again.
void Program::recompute(Action const& action) {
  if (action.keeps == Kept::selective) return complete_stash(action);
  Block const& b = block(action.chunk);
  MicroBatch again = micro(action.micro).batch;
  again.tally = spare_tally_;
  Context c = context(again, action.version, Pass::recompute);
  if (mutant("recompute_new_mask")) ++c.seed;
  Tensor x = boundaries_.take(action.chunk, action.micro, AtEdge::kept_input);
  if (action.keeps == Kept::input) boundaries_.put(action.chunk, action.micro, AtEdge::kept_input, x);
  Stash nothing(0, Keep::nothing);
  Stash& stash = action.keeps == Kept::stash ? stashes_.open(action.chunk, action.micro, b.slots) : nothing;
  Tensor y = b.body->forward(std::move(x), c, stash);
  if (b.merged != nullptr) y = b.merged->forward(std::move(y), c, stash);
  if (hands_on(from_here_)) boundaries_.put(ChunkId{action.chunk.v + 1}, action.micro, AtEdge::kept_input, std::move(y));
}

/// What the forward's stash left out, from what it kept.
void Program::complete_stash(Action const& action) {
  Block const& b = block(action.chunk);
  Context c = context(micro(action.micro).batch, action.version, Pass::recompute);
  Stash& stash = stashes_.at(action.chunk, action.micro);
  stash.restrict(Keep::all);
  b.body->complete(c, stash);
  if (b.merged != nullptr) b.merged->complete(c, stash);
}

/// That of the forward, by the schedule.
Version Program::backward_version(Action const& action) const {
  if (pipeline_mutant(parts_.schedule, "latest_weights_in_backward")) return store_.latest(block(action.chunk).reads.front());
  return action.version;
}

void Program::backward(Action const& action, Wanted wanted) {
  Block const& b = block(action.chunk);
  if (mutant("gathered_weights_freed_early") && parts_.schedule.sharing == Sharing::parameters)
    for (UnitId u : b.reads) parts_.ops.run(*compute_, Fill{store_.flat(Part::compute, u, action.version), 0});
  if (wants_weight(wanted)) {
    peak_gradients_ = std::max(peak_gradients_, int(update_of(action) + 1 - window_));
    for (Segment s : b.produces) store_.gradients().begin(s, leaf_of(action.micro), *compute_);
  }
  Tensor dy;
  bool const last = action.chunk.v + 1 == int(parts_.model.blocks.size());
  if (wants_input(wanted) && !last) dy = boundaries_.take(ChunkId{action.chunk.v + 1}, action.micro, AtEdge::gradient);
  Stash& stash = stashes_.at(action.chunk, action.micro);
  if (b.merged == nullptr) return finish_backward(action, wanted, std::move(dy));
  Context c = context(micro(action.micro).batch, backward_version(action), Pass::train);
  halfway_.push_back({action, b.merged->backward(std::move(dy), c, stash, wanted)});
  if (int(halfway_.size()) < parts_.abreast) return;
  for (Halfway& h : halfway_) {
    if (wants_weight(wanted))
      for (Segment s : b.produces) store_.gradients().resume(s, leaf_of(h.action.micro));
    finish_backward(h.action, wanted, std::move(h.tensor));
  }
  halfway_.clear();
}

/// Through the block's body, to its input.
void Program::finish_backward(Action const& action, Wanted wanted, Tensor dy) {
  Block const& b = block(action.chunk);
  Stash& stash = stashes_.at(action.chunk, action.micro);
  Context c = context(micro(action.micro).batch, backward_version(action), Pass::train);
  Tensor dx = b.body->backward(std::move(dy), c, stash, wanted);
  if (wants_input(wanted) && action.chunk.v > 0) {
    if (parts_.observer != nullptr) parts_.observer->see(action.micro, b.name, "input gradient", dx.view);
    boundaries_.put(action.chunk, action.micro, AtEdge::gradient, std::move(dx));
  }
  if (!wants_weight(wanted)) return stash.drop(Until::input);
  stashes_.close(action.chunk, action.micro);
  for (UnitId u : b.reads) store_.release(u, action.version);
  finish_block(action.micro);
}

void Program::fold(Action const& action) {
  int const leaf = leaf_of(action.micro);
  for (Segment s : block(action.chunk).produces) {
    if (mutants_built) spoil_leaf(s, action.micro);
    store_.gradients().fold(s, leaf, *compute_);
    if (mutants_built) rescale(s);
  }
}

/// Faults: a first block that is run again gets no weight gradient (case 55); a micro-batch left out of the sum, or in it twice.
void Program::spoil_leaf(Segment segment, MicroId micro) {
  auto const runs_first_again = [](Action const& action) { return action.what == Do::recompute && action.chunk.v == 0; };
  if (mutant("recomputed_first_block_untrained") && segment == block(ChunkId{0}).produces.front() &&
      std::any_of(lane_.body.begin(), lane_.body.end(), runs_first_again))
    parts_.ops.run(*compute_, Fill{store_.gradients().leaf(segment), 0});
  if (leaf_of(micro) != 1) return;
  View const leaf = store_.gradients().leaf(segment);
  if (pipeline_mutant(parts_.schedule, "drop_micro_batch")) parts_.ops.run(*compute_, Fill{leaf, 0});
  std::array<View, 2> const twice{leaf, leaf};
  if (pipeline_mutant(parts_.schedule, "backward_twice")) parts_.ops.run(*compute_, SumTree{twice, leaf});
}

/// Fault: what has been summed so far is halved at every pass (case 12).
void Program::rescale(Segment segment) {
  if (!pipeline_mutant(parts_.schedule, "rescale_at_every_pass") || parts_.values == Values::none) return;
  compute_->synchronize();
  View const total = store_.gradients().total(segment);
  for (std::int64_t i = 0; i < total.elements(); ++i)
    if (total.dtype == DType::f64)
      total.as<double>()[i] /= 2;
    else
      total.as<float>()[i] /= 2;
}

void Program::finish_block(MicroId id) {
  auto const at = std::find_if(micros_.begin(), micros_.end(), [&](Live const& live) { return live.batch.id == id; });
  if (--at->blocks_left > 0) return;
  *at = std::move(micros_.back());
  micros_.pop_back();
}

/// Every rank moves its own; in a twin that plays all replicas, those of the first alone move: they are what the others are given.
Running Program::running(MicroId micro, Pass pass) const {
  bool const moves = pass == Pass::train || (pass == Pass::recompute && mutant("recompute_moves_statistics"));
  if (!moves || leaf_of(micro) >= parts_.schedule.leaves.inner) return Running::keep;
  return deferred_ ? Running::defer : Running::update;
}

/// Replicas begin each forward with rank 0's running statistics, as PyTorch's DistributedDataParallel does.
void Program::broadcast_buffers() {
  Communicator& replicas = parts_.mesh.over(axes(Axis::data));
  if (!store_.buffers() || replicas.size() == 1 || mutant("buffers_not_broadcast")) return;
  int const root = mutant("buffers_of_last_rank") ? replicas.size() - 1 : 0;
  Tensor const& all = store_.buffers();
  replicas.post(*compute_, Exchange{.what = Collective::broadcast, .send = all, .recv = all, .root = root, .purpose = "buffers"})
      .wait(*compute_);
}

}  // namespace shardmark
