#include "schedule/recompute.hpp"

#include <fmt/format.h>

#include <set>
#include <utility>

#include "base/error.hpp"

namespace shardmark {
namespace {

class Recomputer {
 public:
  Recomputer(Schedule const& schedule, KeepRule const& rule, int lane) : schedule_(schedule), rule_(rule), lane_(lane) {}

  std::vector<Action> section(std::vector<Action> const& refined) {
    done_.clear();
    std::vector<Action> out;
    for (Action const& action : refined) {
      if (action.what == Do::backward || action.what == Do::backward_input) run_again(out, action);
      out.push_back(action);
    }
    return out;
  }

 private:
  /// The segment that ends with this backward's block, unless a later block of it has had its turn.
  void run_again(std::vector<Action>& out, Action const& backward) {
    if (kept(backward.chunk, backward.micro) == Kept::stash || done_.contains({backward.chunk, backward.micro})) return;
    ChunkId first = backward.chunk;
    while (kept(first, backward.micro) == Kept::nothing) --first.v;
    for (ChunkId block = first; block <= backward.chunk; ++block.v) {
      done_.insert({block, backward.micro});
      out.push_back({.what = Do::recompute, .chunk = block, .micro = backward.micro, .version = backward.version});
    }
  }

  Kept kept(ChunkId block, MicroId micro) const {
    Kept const asked = rule_(lane_, block, micro);
    if (asked != Kept::nothing) return asked;
    bool const begins = block.v == 0 || schedule_.lane_of_chunk[std::size_t(block.v) - 1] != lane_;
    if (begins) return Kept::input;  // what another lane sent can't be made again here
    expect(rule_(lane_, {block.v - 1}, micro) != Kept::stash, "a block without a kept input is recomputed together with the one before it");
    return Kept::nothing;
  }

  Schedule const& schedule_;
  KeepRule const& rule_;
  int lane_;
  std::set<std::pair<ChunkId, MicroId>> done_;  // in this section: ids mean something else in the next
};

}  // namespace

KeepRule recompute_all() {
  return [](int, ChunkId, MicroId) { return Kept::input; };
}

KeepRule recompute_every(int blocks) {
  require_input(blocks >= 1, {fmt::format("recomputation in segments of {} blocks", blocks), "a segment has a block", "give 1 or more"});
  return [blocks](int, ChunkId block, MicroId) { return block.v % blocks == 0 ? Kept::input : Kept::nothing; };
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
    Recomputer recomputer(refined, rule, lane);
    for (Section section : sections) {
      Lane& actions = out.lanes[std::size_t(lane)];
      actions[section] = recomputer.section(actions[section]);
    }
  }
  return out;
}

}  // namespace shardmark
