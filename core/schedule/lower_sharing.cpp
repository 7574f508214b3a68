// All-gathers of weights that the ranks of a data-parallel group share (ZeRO: Rajbhandari et al., SC 2020; by blocks: Zhao et al., PyTorch
// FSDP, VLDB 2023). gK: all-gather of block K's weights, -K: they are given back.
//
//   optimizer, gradients,  ... decide | update 0 | post g0 | update 1 | post g1 | wait g0, wait g1      | next window
//   root (a broadcast)
//   parameters             post g0, wait g0 | post g1 | F0 | -0 | wait g1 | post g2 | F1 | -1 | ... one block ahead of what computes

#include <algorithm>
#include <set>

#include "base/error.hpp"
#include "schedule/lower.hpp"

namespace shardmark {
namespace {

bool uses_weights(Do what) {
  return what == Do::forward || what == Do::recompute || what == Do::backward || what == Do::backward_input || what == Do::backward_weight;
}

class Gathers {
 public:
  Gathers(LaneBuilder& builder, Schedule const& schedule, std::vector<BlockShape> const& blocks, Overlap overlap)
      : builder_(builder), axes_(schedule.reduced_over), what_(gather_of(schedule.sharing)), overlap_(overlap) {
    for (BlockShape const& block : blocks) {
      std::set<UnitId> units;
      for (Segment segment : block.produces) units.insert(segment.unit);
      units_of_block_.emplace_back(units.begin(), units.end());
    }
  }

  /// Weights are whole, but for the pieces that the other ranks update.
  void after_updates() {
    std::vector<Token> tokens;
    for (Action const& action : builder_.input()) {
      builder_.copy(action);
      if (action.what != Do::update) continue;
      tokens.push_back(gather(action.unit));
      if (overlap_ == Overlap::off) finish(tokens);
    }
    finish(tokens);
  }

  /// Weights are whole while a block uses them. What two uses in a row share is kept between them.
  void around_uses() {
    std::vector<Action> const& input = builder_.input();
    std::vector<std::size_t> uses;  // places of actions that use weights
    for (std::size_t i = 0; i < input.size(); ++i)
      if (uses_weights(input[i].what) && !units_of(input[i]).empty()) uses.push_back(i);
    std::size_t next = 0;
    std::vector<Token> coming;  // the weights of the next use
    for (std::size_t i = 0; i < input.size(); ++i) {
      if (next == uses.size() || i != uses[next]) {
        builder_.copy(input[i]);
        continue;
      }
      auto const units = [&](std::size_t use) { return use < uses.size() ? units_of(input[uses[use]]) : std::vector<UnitId>{}; };
      if (next == 0 || overlap_ == Overlap::off) coming = gather_but(units(next), next == 0 ? std::vector<UnitId>{} : units(next - 1));
      finish(coming);
      if (overlap_ == Overlap::on) coming = gather_but(units(next + 1), units(next));
      builder_.copy(input[i]);
      for (UnitId unit : without(units(next), units(next + 1))) builder_.copy({.what = Do::release, .unit = unit});
      ++next;
    }
  }

 private:
  std::vector<UnitId> const& units_of(Action const& action) const { return units_of_block_[std::size_t(action.chunk.v)]; }

  static std::vector<UnitId> without(std::vector<UnitId> units, std::vector<UnitId> const& others) {
    std::erase_if(units, [&](UnitId unit) { return std::binary_search(others.begin(), others.end(), unit); });
    return units;
  }

  Token gather(UnitId unit) { return builder_.post({.transfer = Transfer::collective, .what = what_, .axes = axes_, .unit = unit}); }

  std::vector<Token> gather_but(std::vector<UnitId> const& units, std::vector<UnitId> const& here) {
    std::vector<Token> tokens;
    for (UnitId unit : without(units, here)) tokens.push_back(gather(unit));
    return tokens;
  }

  void finish(std::vector<Token>& tokens) {
    for (Token token : tokens) builder_.wait(token);
    tokens.clear();
  }

  LaneBuilder& builder_;
  Axes axes_;
  Collective what_;
  Overlap overlap_;
  std::vector<std::vector<UnitId>> units_of_block_;  // ascending
};

}  // namespace

void gather_weights(LaneBuilder& builder, Schedule const& schedule, std::vector<BlockShape> const& blocks, Overlap overlap) {
  Gathers gathers(builder, schedule, blocks, overlap);
  switch (schedule.sharing) {
    case Sharing::replicated:
      for (Action const& action : builder.input()) builder.copy(action);
      return;
    case Sharing::optimizer:
    case Sharing::gradients:
    case Sharing::root:
      return gathers.after_updates();
    case Sharing::parameters:
      return gathers.around_uses();
  }
}

}  // namespace shardmark
