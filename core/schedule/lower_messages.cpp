// Messages between lanes. Lane 0 of two, 1F1B, two micro-batches (one block a lane):
//
//   forward 0 | post send 0 | forward 1 | post send 1 | post receive gradient 0 | wait it | wait send 0 | backward 0 | ...

#include <algorithm>

#include "schedule/exchange.hpp"
#include "schedule/lower.hpp"

namespace shardmark {
namespace {

class Boundaries {
 public:
  Boundaries(LaneBuilder& builder, BoundaryExchange const& exchange, int lane)
      : builder_(builder), exchange_(exchange), lane_(lane), tokens_(exchange.messages().size()) {}

  void run() {
    std::vector<Action> const& input = builder_.input();
    BoundaryExchange::Posts const posts = exchange_.posts(lane_);
    for (std::size_t i = 0; i < input.size(); ++i) {
      for (int id : posts.receives_before[i]) post(id, Transfer::receive);
      if (int const needed = exchange_.needed_by({lane_, i}); needed >= 0) builder_.wait(tokens_[std::size_t(needed)]);
      finish_sends(i);
      builder_.copy(input[i]);
      for (int id : posts.sends_behind[i]) post(id, Transfer::send);
    }
    for (int id : posts.sends_behind[input.size()]) post(id, Transfer::send);
    for (int id : outstanding_) builder_.wait(tokens_[std::size_t(id)]);
  }

 private:
  void post(int id, Transfer transfer) {
    LaneMessage const& message = exchange_.messages()[std::size_t(id)];
    bool const send = transfer == Transfer::send;
    tokens_[std::size_t(id)] = builder_.post({.transfer = transfer,
                                              .peer = send ? message.to : message.from,
                                              .edge = message.what.edge,
                                              .gradient = message.what.gradient,
                                              .micro = message.what.micro});
    if (send) outstanding_.push_back(id);
  }

  /// Waits for the sends that should have been used by now.
  void finish_sends(std::size_t i) {
    std::erase_if(outstanding_, [&](int id) {
      bool const over = exchange_.is_over(exchange_.messages()[std::size_t(id)], {lane_, i});
      if (over) builder_.wait(tokens_[std::size_t(id)]);
      return over;
    });
  }

  LaneBuilder& builder_;
  BoundaryExchange const& exchange_;
  int lane_;
  std::vector<Token> tokens_;     // of each message at this lane
  std::vector<int> outstanding_;  // sends that no wait covers yet, in order of posting
};

}  // namespace

void exchange_boundaries(LaneBuilder& builder, BoundaryExchange const& exchange, int lane) { Boundaries(builder, exchange, lane).run(); }

}  // namespace shardmark
