#pragma once
// Recomputation (Chen et al., "Training deep nets with sublinear memory cost", 2016; GPipe, NeurIPS 2019): a forward keeps less, and
// runs again right before its backward.

#include <cstdint>
#include <functional>

#include "schedule/schedule.hpp"

namespace shardmark {

/// What the forward of a block keeps for its backward.
enum class Kept : std::uint8_t {
  stash,   // everything: no recomputation
  input,   // its input: it is run again from there
  nothing  // it is run again from the output of the block before it, which keeps its input or nothing too
};
/// Of one block and micro-batch (as numbered in the body) on a lane.
using KeepRule = std::function<Kept(int lane, ChunkId block, MicroId micro)>;

/// Every block keeps its input alone.
KeepRule recompute_all();
/// Segments of `blocks` blocks, the input of each kept; a lane's chunk begins with a new segment. 1: recompute_all().
/// @throws BadRequest for less than 1
KeepRule recompute_every(int blocks);
/// Like `rule`, but the window's last micro-batch keeps everything: in a flush pipeline its backward follows soon (GPipe's newest first:
/// at once).
KeepRule except_last_micro(KeepRule rule, int micros_per_window);
/// Like `rule`, but not on the last lane: under 1F1B its backward follows at once.
KeepRule last_stage_off(KeepRule rule, int stages);

/// Like `rule`, but not the chain's last block: on one lane its backward follows its forward at once.
KeepRule last_block_off(KeepRule rule, int blocks);

/// Inserts the recomputations: a segment is run again right before the first backward (or its input half) in it. lower() comes later.
Schedule recompute(Schedule const& refined, KeepRule const& rule);

}  // namespace shardmark
