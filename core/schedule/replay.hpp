#pragma once
// Runs an unrolled schedule on a model of the network: every lane in order, waits block. Without costs it shows whether the
// schedule ends; with costs, when. Internal to core/schedule.

#include <deque>
#include <map>
#include <string>
#include <vector>

#include "schedule/simulate.hpp"
#include "schedule/unroll.hpp"

namespace shardmark {

class Replay {
 public:
  /// `costs` nullptr: everything takes no time.
  Replay(Unrolled const& unrolled, CommunicationModel model, Costs const* costs);
  /// @throws BadSchedule when a lane is stuck for ever, or two lanes disagree about the next message of a channel.
  Timeline run();

 private:
  static constexpr double never = -1;

  /// One execution of a post: the messages of its token.
  struct Group {
    int lane = 0;
    Step const* step = nullptr;
    std::size_t stream = 0;
    std::size_t left = 0;  // messages that aren't complete
    double posted = 0, done = 0;
    double held = 0;  // without overlap: paid in the wait
  };
  /// The two ends of one message.
  struct Message {
    int send_group = -1, receive_group = -1;
    double ready = 0;  // of the end that came first
    MicroId micro;
  };
  /// The members of a named group meet in one collective.
  struct Meeting {
    std::vector<int> groups;
    double ready = 0;
  };
  struct LaneState {
    std::size_t at = 0;
    double clock = 0, busy = 0, exposed = 0, first = never;
    bool arrived = false;                          // at the barrier of the decide that it stands at
    std::int32_t given = 0;                        // parts of deferred decisions
    std::vector<std::deque<int>> groups_of_token;  // outstanding, oldest first
    std::vector<std::vector<int>> streams;         // groups that occupy a communicator, in order of posting
    std::vector<std::size_t> heads;
    std::vector<double> free;  // when the last group that occupied it ended
  };
  struct Barrier {
    int arrived = 0;
    double release = 0;
  };
  /// A group that may start now.
  struct Offer {
    int group = 0;
    double ready = 0;
  };

  void wake(int lane);
  void advance(int lane);
  bool step(int lane, Step const& step);
  bool compute(int lane, Step const& step);
  double data_ready(Action const& action) const;
  double decision_ready(int lane, Action const& action);
  double pass_barrier(int lane, Action const& action);
  void arrive(int lane, Version decision);
  void publish(Action const& action, double end);
  bool wait(int lane, Step const& step);
  void post(int lane, Step const& step);
  std::size_t stream_of(Posting const& posting) const;
  bool occupies(Group const& group) const;
  void offer(Offer offer);
  void offer_message(Offer offer, Posting const& posting);
  void offer_meeting(Offer offer, Posting const& posting);
  void complete(int group, double start, double duration);
  double seconds(Posting const& posting) const;
  double advancing(double duration) const;
  [[noreturn]] void report_stuck(int first) const;
  std::string why_stuck(int lane) const;
  Timeline timeline() const;

  Unrolled const& unrolled_;
  CommunicationModel model_;
  Costs const* costs_;
  std::vector<LaneState> lanes_;
  std::vector<bool> queued_;
  std::vector<int> runnable_;
  std::deque<Group> groups_;
  std::vector<Offer> offers_;
  std::vector<Message> messages_;     // [channel][micro-batch, or position under fifo]
  std::vector<int> sent_, received_;  // ends offered so far, per channel
  std::vector<double> channel_free_;
  std::vector<double> made_[2];                 // without messages: when forward and backward of [chunk][micro-batch] ended
  std::map<std::string, std::size_t> members_;  // lanes of a named group
  std::map<std::string, std::size_t> named_streams_;
  std::map<std::pair<std::string, int>, Meeting> meetings_;  // (group, how many before it)
  std::map<std::pair<std::string, int>, int> met_;           // (group, lane): meetings entered
  std::map<Version, Barrier> barriers_;
  std::vector<Span> spans_;
};

}  // namespace shardmark
