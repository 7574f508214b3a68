#pragma once
// Recomputation (Chen et al., "Training deep nets with sublinear memory cost", 2016; GPipe, NeurIPS 2019): a forward keeps less, and
// runs again right before its backward.

#include <functional>
#include <span>

#include "schedule/schedule.hpp"

namespace shardmark {

/// What the forward of one block and micro-batch (from 0 in its window) keeps on a lane.
using KeepRule = std::function<Kept(int lane, ChunkId block, MicroId micro)>;

/// Every block keeps its input alone.
KeepRule recompute_all();
/// Segments of `blocks` blocks, the input of each kept; a lane's chunk begins with a new segment. 1: recompute_all().
/// @throws BadRequest for less than 1
KeepRule recompute_every(int blocks);
/// Every block that has something a selective stash leaves out (BlockShape::selective_cost) keeps one; the others keep everything.
KeepRule recompute_selective(std::vector<BlockShape> const& blocks);
/// Like `rule`, but the window's last micro-batch keeps everything: in a flush pipeline its backward follows soon (GPipe's newest first:
/// at once).
KeepRule except_last_micro(KeepRule rule, int micros_per_window);
/// Like `rule`, but not on the last lane: under 1F1B its backward follows at once.
KeepRule last_stage_off(KeepRule rule, int stages);

/// Like `rule`, but not the chain's last block: on one lane its backward follows its forward at once.
KeepRule last_block_off(KeepRule rule, int blocks);

/// Inserts the recomputations: a segment is run again right before the first backward (or its input half) in it. lower() comes later.
Schedule recompute(Schedule const& refined, KeepRule const& rule);

/// Whether a recomputation gives its output to `next`, the first forward, backward or recomputation behind it: that of the next block.
bool hands_on(Action const& recomputation, Action const& next);
/// The same of the first of `actions`, whatever lies between.
bool hands_on(std::span<Action const> actions);

}  // namespace shardmark
