#include <algorithm>

#include "base/error.hpp"
#include "schedule/schedule.hpp"

namespace shardmark {
namespace {

/// The blocks of each chunk, and what ends an update on each lane.
class Refiner {
 public:
  Refiner(Schedule const& coarse, std::vector<BlockShape> const& blocks, std::vector<int> const& first_block)
      : blocks_(blocks), first_block_(first_block) {
    for (std::size_t chunk = 0; chunk < coarse.lane_of_chunk.size(); ++chunk) {
      int const count = first_block[chunk + 1] - first_block[chunk];
      lane_of_block_.insert(lane_of_block_.end(), std::size_t(count), coarse.lane_of_chunk[chunk]);
    }
    tied_ = tied_units(blocks_, lane_of_block_);
  }

  std::vector<int> const& lane_of_block() const { return lane_of_block_; }

  std::vector<Action> section(std::vector<Action> const& coarse, int lane) const {
    std::vector<Action> out;
    for (Action const& action : coarse) append(out, action, lane);
    return out;
  }

 private:
  void append(std::vector<Action>& out, Action const& action, int lane) const {
    switch (action.what) {
      case Do::forward:
      case Do::recompute:
        return upwards(out, action);
      case Do::backward:
      case Do::backward_input:
      case Do::backward_weight:
        return downwards(out, action);
      case Do::reduce:
        out.push_back(action);
        return;
      case Do::update:
        return finish_update(out, action.version, lane);
      case Do::fold:
      case Do::post:
      case Do::wait:
      case Do::tie:
      case Do::decide:
      case Do::release:
        expect(false, "a coarse schedule has no folds, postings, ties or decisions");
    }
  }

  int begin(ChunkId chunk) const { return first_block_[std::size_t(chunk.v)]; }
  int end(ChunkId chunk) const { return first_block_[std::size_t(chunk.v) + 1]; }

  /// A chunk that keeps its input keeps that of its first block.
  void upwards(std::vector<Action>& out, Action action) const {
    int const last = end(action.chunk);
    for (int b = begin(action.chunk); b < last; ++b) {
      action.chunk = {b};
      out.push_back(action);
      if (action.keeps == Kept::input) action.keeps = Kept::nothing;
    }
  }

  void downwards(std::vector<Action>& out, Action action) const {
    bool const makes_weight_gradients = action.what != Do::backward_input;
    int const first = begin(action.chunk);
    for (int b = end(action.chunk) - 1; b >= first; --b) {
      action.chunk = {b};
      out.push_back(action);
      if (makes_weight_gradients && !blocks_[std::size_t(b)].produces.empty()) {
        out.push_back({.what = Do::fold, .chunk = {b}, .micro = action.micro});
      }
    }
  }

  void finish_update(std::vector<Action>& out, Version version, int lane) const {
    for (TiedUnit const& tied : tied_) {
      if (tied.on(lane)) out.push_back({.what = Do::tie, .version = version, .unit = tied.unit});
    }
    out.push_back({.what = Do::decide, .version = version});
    for (UnitId unit : units_of_lane(blocks_, lane_of_block_, lane)) {
      out.push_back({.what = Do::update, .version = version, .unit = unit});
    }
  }

  std::vector<BlockShape> const& blocks_;
  std::vector<int> const& first_block_;
  std::vector<int> lane_of_block_;
  std::vector<TiedUnit> tied_;
};

}  // namespace

Schedule refine(Schedule const& coarse, std::vector<BlockShape> const& blocks, std::vector<int> const& first_block) {
  expect(coarse.form == Form::coarse, "only a coarse schedule can be refined");
  expect(first_block.size() == coarse.lane_of_chunk.size() + 1, "a partition has one boundary more than chunks");
  expect(first_block.front() == 0 && first_block.back() == int(blocks.size()), "a partition covers every block");
  expect(std::is_sorted(first_block.begin(), first_block.end()), "the chunks of a partition follow one another");
  expect(std::adjacent_find(first_block.begin(), first_block.end()) == first_block.end(), "every chunk has a block");

  Refiner const refiner(coarse, blocks, first_block);
  Schedule refined = coarse;
  refined.form = Form::refined;
  refined.lane_of_chunk = refiner.lane_of_block();
  for (int lane = 0; lane < int(refined.lanes.size()); ++lane) {
    for (Section section : sections) {
      refined.lanes[std::size_t(lane)][section] = refiner.section(coarse.lanes[std::size_t(lane)][section], lane);
    }
  }
  return refined;
}

}  // namespace shardmark
