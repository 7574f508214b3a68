#pragma once
// The two halves of lower(): messages between lanes, and reductions. Internal to core/schedule.

#include <vector>

#include "schedule/exchange.hpp"

namespace shardmark {

/// Rewrites one section of a lane: actions in, actions with posts and waits out. Tokens ascend over the whole lane.
class LaneBuilder {
 public:
  LaneBuilder(Lane& lane, std::vector<Action> input) : lane_(lane), input_(std::move(input)) {}
  std::vector<Action> const& input() const { return input_; }
  void copy(Action const& action) { actions_.push_back(action); }
  /// Its token is new.
  Token post(Posting posting);
  /// An exchange for a deferred decision: one token in all sections of the lane.
  void post_deferred(Posting posting);
  void wait_deferred(Posting posting) { wait(token_of(posting)); }
  void wait(Token token);
  std::vector<Action> finish() { return std::move(actions_); }

 private:
  Token token_of(Posting posting);
  Lane& lane_;
  std::vector<Action> input_;
  std::vector<Action> actions_;
};

/// Sends and receives of activations and gradients between lanes.
void exchange_boundaries(LaneBuilder& builder, BoundaryExchange const& exchange, int lane);

/// Replaces reduce marks by all-reduces over schedule.reduced_over (reduce-scatters where their sums are shared), and exchanges the slots
/// of tied units before each tie.
void reduce_gradients(LaneBuilder& builder, Schedule const& schedule, std::vector<BlockShape> const& blocks, int lane, Overlap overlap);

/// Makes weights whole of which each rank updates or keeps a piece (Schedule::sharing), and gives them back.
void gather_weights(LaneBuilder& builder, Schedule const& schedule, std::vector<BlockShape> const& blocks, Overlap overlap);

}  // namespace shardmark
