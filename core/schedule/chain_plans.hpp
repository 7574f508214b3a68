#pragma once
// Which forwards of a chain keep what, and which are run again when, so that least time is spent on recomputation under a memory budget.
// Sizes and costs in, a plan out: no tensors, no clock.
//
// Source: Beaumont, Eyraud-Dubois, Herrmann, Joly, Shilova, "Optimal checkpointing for heterogeneous chains: how to train deep neural
// networks with limited memory", 2019 (rotor). On chains of equal blocks whose stashes never pay, the plans are Revolve's (Griewank and
// Walther, "Algorithm 799: Revolve", 2000): with c inputs at a time beside that of the running block, the chain's own among them, and each
// block run at most r times before the run that stashes it, C(c+r, c) blocks can be had.
//
// The class of plans, in which the result is optimal: each run of a block keeps its stash, its input or nothing; a kept input or stash
// stays until the backward that needs it ("persistent"); blocks may be run again any number of times. A block's stash is whole.

#include <cstdint>
#include <optional>
#include <vector>

#include "schedule/schedule.hpp"

namespace shardmark {

/// One block and micro-batch. Bytes are those above what was alive before, of which the block's input is a part.
struct ChainBlock {
  double forward_seconds = 0;       // or any unit
  std::int64_t output_bytes = 0;    // of what the next block gets; 0 for the loss
  std::int64_t stash_bytes = 0;     // alive behind a forward that keeps its stash, output included
  std::int64_t stash_peak = 0;      // most during it
  std::int64_t light_peak = 0;      // most during a forward that keeps nothing
  std::int64_t held_bytes = 0;      // of the stash when its backward begins: what only the next block needed is gone
  std::int64_t gradient_bytes = 0;  // of the output's gradient; 0 behind the loss
  std::int64_t backward_peak = 0;   // most during the backward, beyond what it holds and the gradient
};

/// A run of a block right before a backward.
struct RunAgain {
  int block = 0;
  Kept keeps = Kept::stash;
  bool operator==(RunAgain const&) const = default;
};

struct ChainPlan {
  std::vector<Kept> forward;                  // by block
  std::vector<std::vector<RunAgain>> before;  // recomputations right before each block's backward, in order
  std::int64_t peak_bytes = 0;                // above the chain's input
  double again_seconds = 0;                   // of all recomputations
};

/// The plan that keeps the chain's input alone, and begins again from there right before the last block's backward: for a lane whose
/// micro-batches wait for theirs.
ChainPlan from_input(ChainPlan plan, double forward_seconds);

/// All plans of a chain that are best for some budget.
class ChainPlans {
 public:
  /// Dynamic programming over segments, O(blocks^3) merges of lists of (bytes, seconds).
  /// @pre at least one block; every size and cost >= 0
  explicit ChainPlans(std::vector<ChainBlock> chain);

  struct Point {
    std::int64_t peak_bytes = 0;
    double again_seconds = 0;
  };
  std::vector<ChainBlock> const& chain() const { return chain_; }
  double forward_seconds() const { return seconds_before_.back(); }
  /// The curve of memory and time: ascending bytes, descending seconds, no point worse than another. The first is the least memory.
  std::vector<Point> front() const;
  /// The least recomputation within a budget; absent below front().front().
  std::optional<ChainPlan> within(std::int64_t budget_bytes) const;

  /// Lists longer than this lose points evenly between their ends: still plans that fit, no longer every one that is best. Chains of ten
  /// blocks stay below it.
  static constexpr std::size_t most_points = 1024;

 private:
  struct Best {  // of a segment [first, last], its input held
    std::int64_t bytes = 0;
    double seconds = 0;                     // of its forwards
    int split = -1;                         // the block before which an input is kept; -1: the first block keeps its stash
    std::int32_t behind = -1, before = -1;  // which points of the parts [split, last] (or [first + 1, last]) and [first, split - 1]
  };
  using Front = std::vector<Best>;
  class Writer;

  Front const& of(int first, int last) const { return fronts_[std::size_t(first) * chain_.size() + std::size_t(last)]; }
  void add_stashing(int first, int last, Front& out) const;
  void add_split(int first, int split, int last, Front& out) const;
  std::int64_t sweep_peak(int first, int end) const;
  static void prune(Front& points);

  std::vector<ChainBlock> chain_;
  std::vector<double> seconds_before_;  // of the forwards of the blocks before each
  std::vector<Front> fronts_;
};

/// Inserts each lane's plan, whose blocks are the lane's in order. lower() comes later.
/// @pre every lane's blocks are one piece of the chain
Schedule recompute(Schedule const& refined, std::vector<ChainPlan> const& of_lane);

}  // namespace shardmark
