#include "schedule/recompute.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/error.hpp"

namespace shardmark {
namespace {

class Recomputer {
 public:
  Recomputer(Schedule const& schedule, KeepRule const& rule, int lane) : schedule_(schedule), rule_(rule), lane_(lane) {}

  std::vector<Action> section(std::vector<Action> const& refined) const {
    std::vector<Action> out;
    for (Action action : refined) {
      if (action.what == Do::backward || action.what == Do::backward_input) run_again(out, action);
      if (action.what == Do::forward) action.keeps = kept(action.chunk, action.micro);
      out.push_back(action);
    }
    return out;
  }

 private:
  void run_again(std::vector<Action>& out, Action const& backward) const {
    auto const add = [&](ChunkId block, Kept keeps) {
      out.push_back({.what = Do::recompute, .chunk = block, .micro = backward.micro, .version = backward.version, .keeps = keeps});
    };
    Kept const here = kept(backward.chunk, backward.micro);
    if (here == Kept::stash) return;
    if (here == Kept::selective) return add(backward.chunk, Kept::selective);
    if (!ends_segment(backward.chunk, backward.micro)) return;
    ChunkId first = backward.chunk;
    while (kept(first, backward.micro) == Kept::nothing) --first.v;
    for (ChunkId block = first; block <= backward.chunk; ++block.v) add(block, Kept::stash);
  }

  bool on_lane(ChunkId block) const {
    return block.v >= 0 && std::size_t(block.v) < schedule_.lane_of_chunk.size() && schedule_.lane_of_chunk[std::size_t(block.v)] == lane_;
  }

  /// The block behind it isn't run again from this one's output.
  bool ends_segment(ChunkId block, MicroId micro) const {
    ChunkId const next{block.v + 1};
    return !on_lane(next) || kept(next, micro) != Kept::nothing;
  }

  Kept kept(ChunkId block, MicroId micro) const {
    MicroId const of_window{micro.v % schedule_.micros_per_window};
    Kept const asked = rule_(lane_, block, of_window);
    if (asked != Kept::nothing) return asked;
    ChunkId const before{block.v - 1};
    if (!on_lane(before)) return Kept::input;  // what another lane sent can't be made again here
    Kept const beside = rule_(lane_, before, of_window);
    expect(beside == Kept::input || beside == Kept::nothing, "a block without a kept input is recomputed together with the one before it");
    return Kept::nothing;
  }

  Schedule const& schedule_;
  KeepRule const& rule_;
  int lane_;
};

}  // namespace

KeepRule recompute_all() {
  return [](int, ChunkId, MicroId) { return Kept::input; };
}

KeepRule recompute_every(int blocks) {
  require_input(blocks >= 1, {fmt::format("recomputation in segments of {} blocks", blocks), "a segment has a block", "give 1 or more"});
  return [blocks](int, ChunkId block, MicroId) { return block.v % blocks == 0 ? Kept::input : Kept::nothing; };
}

KeepRule recompute_selective(std::vector<BlockShape> const& blocks) {
  std::vector<Kept> keeps;
  for (BlockShape const& block : blocks) keeps.push_back(block.selective_cost > 0 ? Kept::selective : Kept::stash);
  return [keeps = std::move(keeps)](int, ChunkId block, MicroId) { return keeps.at(std::size_t(block.v)); };
}

KeepRule except_last_micro(KeepRule rule, int micros_per_window) {
  return [rule = std::move(rule), micros_per_window](int lane, ChunkId block, MicroId micro) {
    return (micro.v + 1) % micros_per_window == 0 ? Kept::stash : rule(lane, block, micro);
  };
}

KeepRule last_stage_off(KeepRule rule, int stages) {
  return [rule = std::move(rule), stages](int lane, ChunkId block, MicroId micro) {
    return lane == stages - 1 ? Kept::stash : rule(lane, block, micro);
  };
}

KeepRule last_block_off(KeepRule rule, int blocks) {
  return [rule = std::move(rule), blocks](int lane, ChunkId block, MicroId micro) {
    return block.v == blocks - 1 ? Kept::stash : rule(lane, block, micro);
  };
}

Schedule recompute(Schedule const& refined, KeepRule const& rule) {
  expect(refined.form == Form::refined, "recomputation is a matter of blocks: refine() comes first, lower() later");
  Schedule out = refined;
  for (int lane = 0; lane < int(out.lanes.size()); ++lane) {
    Recomputer const recomputer(refined, rule, lane);
    for (Section section : sections) {
      Lane& actions = out.lanes[std::size_t(lane)];
      actions[section] = recomputer.section(actions[section]);
    }
  }
  return out;
}

bool hands_on(Action const& recomputation, Action const& next) {
  return recomputation.what == Do::recompute && recomputation.keeps != Kept::selective && next.what == Do::recompute &&
         next.keeps != Kept::selective && next.micro == recomputation.micro && next.chunk.v == recomputation.chunk.v + 1;
}

bool hands_on(std::span<Action const> actions) {
  static constexpr Do running[] = {Do::forward, Do::recompute, Do::backward, Do::backward_input, Do::backward_weight};
  auto const next = std::find_if(actions.begin() + 1, actions.end(),
                                 [](Action const& action) { return std::ranges::find(running, action.what) != std::end(running); });
  return next != actions.end() && hands_on(actions.front(), *next);
}

}  // namespace shardmark
