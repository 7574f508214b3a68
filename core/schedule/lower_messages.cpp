// Messages between lanes. Lane 0 of two, 1F1B, two micro-batches (one block a lane):
//
//   forward 0 | post send 0 | forward 1 | post {send 1, receive gradient 0} | wait it | wait send 0 | backward 0 | ...
//
// The group matters to NCCL, which runs groups of one communicator in order: with two groups here lane 0 would be stuck in `send 1`
// and lane 1, which sends gradient 0 before it receives activation 1, in `send gradient 0`.

#include <algorithm>
#include <optional>

#include "schedule/lower.hpp"

namespace shardmark {
namespace {

bool takes_gradient(Do what) { return what == Do::backward || what == Do::backward_input; }

class Boundaries {
 public:
  Boundaries(LaneBuilder& builder, std::vector<int> const& lane_of_block, int lane)
      : builder_(builder), lane_of_block_(lane_of_block), lane_(lane) {}

  void run() {
    std::vector<Action> const& input = builder_.input();
    std::vector<std::size_t> const receiver = receivers(input);
    Token received;
    for (std::size_t i = 0; i < input.size(); ++i) {
      if (auto needed = receiver[i] < input.size() ? needed_by(input[receiver[i]]) : std::nullopt) received = post_receive(*needed);
      if (needed_by(input[i])) builder_.wait(received);
      if (takes_gradient(input[i].what)) finish_activation(input[i].chunk, input[i].micro);
      builder_.copy(input[i]);
      if (auto made = made_by(input[i])) post_send(*made);
    }
    for (Posting const& send : outstanding_) builder_.wait(send.token);
  }

 private:
  /// receiver[i] = the action whose message is posted before action i: i itself, or the backward behind a recomputation that
  /// starts at i, so that the gradient travels while the activations are made again. input.size(): none.
  static std::vector<std::size_t> receivers(std::vector<Action> const& input) {
    std::vector<std::size_t> receiver(input.size(), input.size());
    std::size_t first = 0;  // of the recomputations directly before i
    for (std::size_t i = 0; i < input.size(); ++i) {
      if (input[i].what == Do::recompute) continue;
      receiver[takes_gradient(input[i].what) ? first : i] = i;
      first = i + 1;
    }
    return receiver;
  }

  bool elsewhere(int block) const {
    return block >= 0 && block < int(lane_of_block_.size()) && lane_of_block_[std::size_t(block)] != lane_;
  }

  /// The message between this lane and the lane of `block`, if that is another one.
  std::optional<Posting> message(Transfer transfer, int block, int edge, bool gradient, MicroId micro) const {
    if (!elsewhere(block)) return {};
    int const peer = lane_of_block_[std::size_t(block)];
    return Posting{.transfer = transfer, .peer = peer, .edge = {edge}, .gradient = gradient, .micro = micro};
  }

  std::optional<Posting> needed_by(Action const& action) const {
    int const block = action.chunk.v;
    if (action.what == Do::forward) return message(Transfer::receive, block - 1, block, false, action.micro);
    if (takes_gradient(action.what)) return message(Transfer::receive, block + 1, block + 1, true, action.micro);
    return {};
  }

  std::optional<Posting> made_by(Action const& action) const {
    int const block = action.chunk.v;
    if (action.what == Do::forward) return message(Transfer::send, block + 1, block + 1, false, action.micro);
    if (takes_gradient(action.what)) return message(Transfer::send, block - 1, block, true, action.micro);
    return {};
  }

  /// A gradient joins the activation that was sent over the same boundary directly before; the wait of the group then ends both.
  Token post_receive(Posting const& receive) {
    Action const* last = builder_.last();
    bool const sent = !outstanding_.empty() && last != nullptr && last->what == Do::post && last->token == outstanding_.back().token;
    bool const grouped = sent && receive.gradient && !outstanding_.back().gradient && outstanding_.back().edge == receive.edge;
    if (!grouped) return builder_.post(receive);
    builder_.join(receive);
    outstanding_.pop_back();
    return last->token;
  }

  void post_send(Posting send) {
    if (send.gradient) finish([&](Posting const& open) { return open.gradient && open.peer == send.peer && open.edge == send.edge; });
    send.token = builder_.post(send);
    outstanding_.push_back(send);
  }

  /// The backward of `micro` follows: its activation has been used by now, so this wait costs nothing.
  void finish_activation(ChunkId chunk, MicroId micro) {
    finish([&](Posting const& open) { return !open.gradient && open.edge.v == chunk.v + 1 && open.micro == micro; });
  }

  template <class Match>
  void finish(Match&& matches) {
    auto const open = std::find_if(outstanding_.begin(), outstanding_.end(), matches);
    if (open == outstanding_.end()) return;
    builder_.wait(open->token);
    outstanding_.erase(open);
  }

  LaneBuilder& builder_;
  std::vector<int> const& lane_of_block_;
  int lane_;
  std::vector<Posting> outstanding_;  // sends that no wait covers yet, in order of posting
};

}  // namespace

void exchange_boundaries(LaneBuilder& builder, std::vector<int> const& lane_of_block, int lane) {
  Boundaries(builder, lane_of_block, lane).run();
}

}  // namespace shardmark
