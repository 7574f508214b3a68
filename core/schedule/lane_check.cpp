#include "schedule/lane_check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <map>
#include <set>

namespace shardmark {
namespace {

/// Every posting is waited for exactly once, in the run of the section that posted it, or, for deferred decisions, some time behind it.
class LaneTokens {
 public:
  LaneTokens(Unrolled const& unrolled, int lane) : unrolled_(unrolled), lane_(lane), tokens_(std::size_t(unrolled.tokens(lane))) {}

  void post(Step const& step) {
    State& state = tokens_[std::size_t(step.action.token.v)];
    bool const again = state.latest != nullptr && same_run(*state.latest, step);
    if (again && !deferred(step)) reject(lane_, step, "this token was posted before");
    state.latest = &step;
    state.open.push_back(&step);
    if (!deferred(step)) ++outstanding_;
  }

  /// The post that this wait ends.
  Step const& wait(Step const& step) {
    State& state = tokens_[std::size_t(step.action.token.v)];
    if (state.open.empty()) reject(lane_, step, "this token is not outstanding");
    Step const& posted = *state.open.front();
    state.open.pop_front();
    if (!deferred(step)) --outstanding_;
    return posted;
  }

  void finish_section() const {
    if (outstanding_ > 0)
      reject_open([&](Step const& posted) { return !deferred(posted); }, "nothing waits for this before the section ends");
  }
  void finish() const {
    finish_section();
    reject_open([](Step const&) { return true; }, "nothing waits for this before the lane ends");
  }

  static bool same_run(Step const& a, Step const& b) { return a.section == b.section && a.windows == b.windows; }

 private:
  struct State {
    Step const* latest = nullptr;  // post
    std::deque<Step const*> open;  // posts that no wait has ended, oldest first
  };
  /// An exchange of what lanes give to a deferred decision.
  bool deferred(Step const& step) const {
    return unrolled_.schedule().defers() && !unrolled_.postings(lane_, step.action.token).front().group.empty();
  }
  template <class Which>
  void reject_open(Which const& which, std::string const& problem) const {
    for (State const& state : tokens_) {
      if (!state.open.empty() && which(*state.open.front())) reject(lane_, *state.open.front(), problem);
    }
  }
  Unrolled const& unrolled_;
  int lane_;
  std::vector<State> tokens_;
  int outstanding_ = 0;
};

class LaneWalk {
 public:
  LaneWalk(Unrolled const& unrolled, LaneContents const& contents, int lane)
      : unrolled_(unrolled),
        contents_(contents),
        lane_(lane),
        order_(unrolled, contents, lane),
        sums_(unrolled, contents, lane),
        weights_(unrolled, contents, lane),
        tokens_(unrolled, lane) {}

  void run() {
    Step const* before = nullptr;
    for (Step const& step : unrolled_.lane(lane_)) {
      if (before != nullptr && !LaneTokens::same_run(*before, step)) tokens_.finish_section();
      take(step);
      before = &step;
    }
    tokens_.finish();
    order_.finish();
    sums_.finish();
    weights_.finish();
  }

 private:
  void take(Step const& step) {
    if (step.action.chunk.valid() && step.action.what <= Do::recompute) weights_.use(step);
    switch (step.action.what) {
      case Do::forward:
        return order_.forward(step, sums_.latest(contents_.local[std::size_t(step.action.chunk.v)]));
      case Do::recompute:
        return order_.recompute(step);
      case Do::backward:
        order_.backward_input(step);
        return weight_gradients(step);
      case Do::backward_input:
        return order_.backward_input(step);
      case Do::backward_weight:
        return weight_gradients(step);
      case Do::fold:
        return fold(step);
      case Do::reduce:
        return sums_.mark(step);
      case Do::post:
        return post(step);
      case Do::wait:
        return wait(step);
      case Do::tie:
        return sums_.tie(step);
      case Do::decide:
        return sums_.decide(step);
      case Do::update:
        sums_.update(step);
        return weights_.update(step);
      case Do::release:
        return weights_.release(step);
    }
  }

  void weight_gradients(Step const& step) {
    order_.backward_weight(step);
    if (unrolled_.schedule().form == Form::coarse) sums_.leaf(step);
  }

  void fold(Step const& step) {
    std::size_t const chunk = contents_.local[std::size_t(step.action.chunk.v)];
    if (!order_.weight_gradients_made(chunk, step.action.micro)) reject(lane_, step, "its weight gradients have not been made");
    if (contents_.units_of[chunk].empty()) reject(lane_, step, "this chunk has no gradients to fold");
    sums_.leaf(step);
  }

  void post(Step const& step) {
    tokens_.post(step);
    for (Posting const& posting : unrolled_.postings(lane_, step.action.token)) {
      if (gathers_weights(posting)) {
        weights_.gather_posted(step, posting);
      } else if (posting.transfer == Transfer::collective) {
        sums_.reduction_posted(step, posting, order_);
      } else {
        order_.message_posted(step, posting);
      }
    }
  }

  void wait(Step const& step) {
    Step const& posted = tokens_.wait(step);
    for (Posting const& posting : unrolled_.postings(lane_, step.action.token)) {
      if (gathers_weights(posting)) {
        weights_.gather_complete(posting);
      } else if (posting.transfer == Transfer::collective) {
        sums_.reduction_complete(posted, posting);
      } else {
        order_.message_complete(posted, posting);
      }
    }
  }

  Unrolled const& unrolled_;
  LaneContents const& contents_;
  int lane_;
  LaneOrder order_;
  LaneSums sums_;
  LaneWeights weights_;
  LaneTokens tokens_;
};

/// Each of the lane's gradient segments is in exactly one of its buckets; their chunks.
std::vector<std::vector<std::size_t>> chunks_of_buckets(std::vector<Bucket> const& buckets, std::map<Segment, std::size_t> producers,
                                                        int lane) {
  std::vector<std::vector<std::size_t>> chunks;
  for (std::size_t k = 0; k < buckets.size(); ++k) {
    if (buckets[k].id.v != int(k)) throw BadSchedule(fmt::format("lane {}: buckets must be numbered from 0 on", lane));
    std::set<std::size_t> distinct;
    for (Segment segment : buckets[k].segments) {
      auto const producer = producers.extract(segment);
      if (producer.empty()) {
        throw BadSchedule(fmt::format("lane {}: bucket {} holds unit {} slot {}, which is in another bucket or not made here", lane, k,
                                      segment.unit.v, segment.slot));
      }
      distinct.insert(producer.mapped());
    }
    chunks.emplace_back(distinct.begin(), distinct.end());
  }
  if (!buckets.empty() && !producers.empty()) {
    Segment const missing = producers.begin()->first;
    throw BadSchedule(fmt::format("lane {}: unit {} slot {} is in no bucket", lane, missing.unit.v, missing.slot));
  }
  return chunks;
}

}  // namespace

LaneContents::LaneContents(Schedule const& schedule, std::vector<BlockShape> const& blocks, std::vector<TiedUnit> const& all_tied, int lane)
    : local(schedule.lane_of_chunk.size()) {
  for (std::size_t chunk = 0; chunk < local.size(); ++chunk) {
    if (schedule.lane_of_chunk[chunk] != lane) continue;
    local[chunk] = chunks.size();
    chunks.push_back(int(chunk));
  }
  units_of.resize(chunks.size());
  chunk_buckets.resize(chunks.size());
  if (schedule.form == Form::coarse) return;

  units = units_of_lane(blocks, schedule.lane_of_chunk, lane);
  tied.resize(units.size());
  chunks_of.resize(units.size());
  for (TiedUnit const& unit : all_tied) {
    if (unit.on(lane)) tied[place_of(unit.unit)] = &unit;
  }
  std::map<Segment, std::size_t> producers;
  for (std::size_t chunk = 0; chunk < chunks.size(); ++chunk) {
    std::set<std::size_t> distinct;
    for (Segment segment : blocks[std::size_t(chunks[chunk])].produces) {
      distinct.insert(place_of(segment.unit));
      producers[segment] = chunk;
    }
    units_of[chunk].assign(distinct.begin(), distinct.end());
    for (std::size_t unit : distinct) chunks_of[unit].push_back(chunk);
  }
  if (schedule.buckets.empty()) return;
  bucket_chunks = chunks_of_buckets(schedule.buckets[std::size_t(lane)], producers, lane);
  for (std::size_t bucket = 0; bucket < bucket_chunks.size(); ++bucket) {
    for (std::size_t chunk : bucket_chunks[bucket]) chunk_buckets[chunk].push_back(bucket);
  }
}

std::size_t LaneContents::place_of(UnitId unit) const {
  auto const found = std::lower_bound(units.begin(), units.end(), unit);
  return std::size_t((found != units.end() && *found == unit ? found : units.end()) - units.begin());
}

void check_lane(Unrolled const& unrolled, LaneContents const& contents, int lane) { LaneWalk(unrolled, contents, lane).run(); }

}  // namespace shardmark
