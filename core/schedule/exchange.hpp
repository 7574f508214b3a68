#pragma once
// Where messages between lanes are posted and waited for, in one section of a refined schedule. Internal to core/schedule.
//
// All lanes are walked at once, earliest action first: one order in which all data flows. Everything is placed by it, so that no wait
// closes a circle, whatever the durations really are:
// - an action waits for messages made by actions in front of it;
// - Matching::by_name: a receive is posted when the message before it on its channel is used, so that one is always on its way;
// - a send is waited for behind the chunk that needs it elsewhere, once that should have ended: then the wait takes no time;
// - Matching::by_launch_order: messages are posted in the order in which they're made, a receive before the first action behind that.

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <vector>

#include "schedule/schedule.hpp"

namespace shardmark {

/// An action of a section.
struct ActionPlace {
  int lane = 0;
  std::size_t action = 0;
};

/// The activation that crosses the boundary in front of block `edge`, or its gradient, of one micro-batch.
struct MessageName {
  ChunkId edge;
  bool gradient = false;
  MicroId micro;
  auto operator<=>(MessageName const&) const = default;
};

/// Its two ends; one of them is missing when it lies in another section.
struct LaneMessage {
  MessageName what;
  int from = 0, to = 0;  // lanes
  std::optional<ActionPlace> made, needed;
  std::size_t channel_free = 0;  // the receiver's action that uses the message before this one
};

class BoundaryExchange {
 public:
  BoundaryExchange(Schedule const& refined, std::vector<BlockShape> const& blocks, Section section, Matching matching);

  std::vector<LaneMessage> const& messages() const { return messages_; }
  /// Messages that `lane` posts directly before or behind an action, in order; places: number of actions of the section + 1.
  struct Posts {
    std::vector<std::vector<int>> receives_before, sends_behind;
  };
  Posts posts(int lane) const;
  /// The message without which an action can't start; -1: none.
  int needed_by(ActionPlace place) const { return needed_[std::size_t(place.lane)][place.action]; }
  /// Whether the message should have been used when `place`, on the sender's lane, starts.
  bool is_over(LaneMessage const& message, ActionPlace place) const;

 private:
  void find_messages();
  void add_end(ActionPlace place, Action const& action);
  /// When an action would run.
  struct Step {
    std::size_t position = unreached;  // in the order of all lanes
    double start = 0, end = 0;
  };
  static constexpr std::size_t unreached = std::numeric_limits<std::size_t>::max();
  Step const& step(ActionPlace place) const { return steps_[std::size_t(place.lane)][place.action]; }
  int message(MessageName what, int from, int to);
  void walk(std::vector<BlockShape> const& blocks);
  std::size_t first_behind(int lane, std::size_t position) const;
  std::size_t receive_place(LaneMessage const& message) const;
  std::size_t last_place(LaneMessage const& message) const;
  ActionPlace last_user(ActionPlace place) const;
  void find_free_channels();
  std::size_t position(ActionPlace place) const { return step(place).position; }
  std::vector<Action> const& actions(int lane) const { return schedule_.lanes[std::size_t(lane)][section_]; }

  Schedule const& schedule_;
  Section section_;
  Matching matching_;
  std::vector<LaneMessage> messages_;
  std::map<MessageName, int> index_;
  std::vector<std::vector<int>> needed_, made_;  // [lane][action] -> message; -1: none
  std::vector<std::vector<Step>> steps_;         // [lane][action]
};

}  // namespace shardmark
