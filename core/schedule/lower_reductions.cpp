// Reductions of gradients over replicas, and the exchange of tied slots between lanes.
//
//   Inside::micros, overlap on   .. backward fold +0 | backward fold +1 | wait 0, wait 1 | tie decide update
//   Inside::micros, overlap off  .. backward fold | backward fold | +0 +1 wait 0, wait 1 | tie decide update
//   Inside::replicas             .. backward +0 | backward +1 | wait 0, wait 1, fold fold | next micro-batch
//   the same, sums in pieces     .. backward +0 | backward +1 wait 0, fold | backward +2 wait 1, fold | .. (+k: post bucket k)
//
// Deferred decisions, on the first lane, whose gradients are complete last and which counts tied units in the norm, and on a later one:
//
//   ... backward | fold | post slots | wait slots | tie | post part | wait part | decide update
//   ... backward | fold | post slots | post part | forward and backward of later updates | wait slots | tie | wait part | decide update

#include <algorithm>
#include <map>
#include <optional>

#include "base/error.hpp"
#include "schedule/lower.hpp"

namespace shardmark {
namespace {

class Reductions {
 public:
  Reductions(LaneBuilder& builder, Schedule const& schedule, std::vector<BlockShape> const& blocks, int lane, Overlap overlap)
      : builder_(builder),
        axes_(schedule.reduced_over),
        what_(sum_of(schedule.sharing)),
        lane_(lane),
        overlap_(overlap),
        defers_(schedule.defers()) {
    for (TiedUnit const& unit : tied_units(blocks, schedule.lane_of_chunk)) {
      if (unit.on(lane) && unit.shared()) shared_.push_back(unit);
    }
    if (axes_ == 0) return;
    std::map<Segment, std::size_t> bucket_of;
    std::vector<Bucket> const& buckets = schedule.buckets[std::size_t(lane)];
    for (std::size_t k = 0; k < buckets.size(); ++k) {
      ids_.push_back(buckets[k].id);
      expect(what_ != Collective::reduce_scatter || buckets[k].segments.size() == 1, "a bucket that is scattered is one segment");
      for (Segment segment : buckets[k].segments) bucket_of[segment] = k;
    }
    buckets_of_block_.resize(blocks.size());
    for (std::size_t b = 0; b < blocks.size(); ++b) {
      if (schedule.lane_of_chunk[b] != lane) continue;
      for (Segment segment : blocks[b].produces) {
        auto const found = bucket_of.find(segment);
        expect(found != bucket_of.end(), "every gradient segment of a lane is in one of its buckets");
        buckets_of_block_[b].push_back(found->second);
      }
    }
  }

  /// One all-reduce per bucket and update.
  void once_per_update() {
    std::vector<Action> const& input = builder_.input();
    for (std::size_t begin = 0; begin < input.size();) {
      auto const is_mark = [](Action const& action) { return action.what == Do::reduce; };
      auto const mark = std::size_t(std::find_if(input.begin() + std::ptrdiff_t(begin), input.end(), is_mark) - input.begin());
      reduce_between(begin, mark);
      if (mark < input.size()) finish_gradients();
      begin = mark + 1;
    }
  }

  /// One all-reduce per bucket and micro-batch, before its leaves are folded.
  void once_per_micro() {
    struct Pending {
      std::vector<Action> folds;
      std::vector<std::size_t> segments_left;
      std::size_t buckets_left = 0;
      std::vector<Token> tokens;
    };
    std::map<MicroId, Pending> pending;
    for (Action const& action : builder_.input()) {
      if (action.what == Do::reduce) {
        finish_gradients();
        continue;
      }
      if (action.what != Do::fold) {
        copy(action);
        continue;
      }
      auto const [found, fresh] = pending.try_emplace(action.micro);
      Pending& micro = found->second;
      if (fresh) micro = {{}, segments_per_bucket(), ids_.size(), {}};
      micro.folds.push_back(action);
      for (std::size_t k : buckets_of_block_[std::size_t(action.chunk.v)]) {
        if (--micro.segments_left[k] > 0) continue;
        --micro.buckets_left;
        if (overlap_ == Overlap::on) micro.tokens.push_back(post(k, action.micro));
      }
      if (micro.buckets_left > 0) continue;
      for (std::size_t k = 0; overlap_ == Overlap::off && k < ids_.size(); ++k) micro.tokens.push_back(post(k, action.micro));
      for (Token token : micro.tokens) builder_.wait(token);
      for (Action const& fold : micro.folds) builder_.copy(fold);
      pending.erase(found);
    }
    expect(pending.empty(), "all weight gradients of a micro-batch are made in one section of a lane");
  }

  /// Each block's leaves are reduced to this rank's pieces and folded before the block after the next one makes its own: whole leaves of
  /// at most two blocks are there at once.
  void block_by_block() {
    struct UnderWay {
      Action fold;
      std::vector<Token> tokens;
    };
    std::optional<UnderWay> under_way;
    auto const finish = [&] {
      if (!under_way) return;
      for (Token token : under_way->tokens) builder_.wait(token);
      builder_.copy(under_way->fold);
      under_way.reset();
    };
    for (Action const& action : builder_.input()) {
      if (action.what == Do::reduce) {
        finish();
        continue;
      }
      if (action.what != Do::fold) {
        copy(action);
        continue;
      }
      std::vector<Token> tokens;
      for (std::size_t k : buckets_of_block_[std::size_t(action.chunk.v)]) tokens.push_back(post(k, action.micro));
      finish();
      under_way = UnderWay{action, std::move(tokens)};
      if (overlap_ == Overlap::off) finish();
    }
    expect(!under_way, "a section that makes weight gradients reduces them");
  }

 private:
  /// Copies input[begin, mark) and posts each bucket after the last fold of a segment in it, or at the mark.
  void reduce_between(std::size_t begin, std::size_t mark) {
    std::vector<Action> const& input = builder_.input();
    bool const reduces = mark < input.size() && axes_ != 0;
    std::vector<std::size_t> const due = reduces ? due_positions(begin, mark) : std::vector<std::size_t>{};
    std::vector<Token> tokens;
    for (std::size_t i = begin; i < mark; ++i) {
      copy(input[i]);
      while (tokens.size() < due.size() && due[tokens.size()] == i) tokens.push_back(post(tokens.size(), {}));
    }
    while (tokens.size() < due.size()) tokens.push_back(post(tokens.size(), {}));
    for (Token token : tokens) builder_.wait(token);
  }

  /// Where each bucket is complete (the mark, when a segment isn't folded in this stretch); never before the bucket in front of it.
  std::vector<std::size_t> due_positions(std::size_t begin, std::size_t mark) const {
    std::vector<std::size_t> due(ids_.size(), mark);
    if (overlap_ == Overlap::off) return due;
    std::vector<std::size_t> left = segments_per_bucket();
    std::vector<bool> seen(buckets_of_block_.size());
    for (std::size_t i = mark; i-- > begin;) {
      Action const& action = builder_.input()[i];
      if (action.what != Do::fold || seen[std::size_t(action.chunk.v)]) continue;
      seen[std::size_t(action.chunk.v)] = true;
      for (std::size_t k : buckets_of_block_[std::size_t(action.chunk.v)]) {
        due[k] = due[k] == mark ? i : due[k];
        --left[k];
      }
    }
    for (std::size_t k = 0; k < due.size(); ++k) {
      if (left[k] > 0) due[k] = mark;
      if (k > 0) due[k] = std::max(due[k], due[k - 1]);
    }
    return due;
  }

  std::vector<std::size_t> segments_per_bucket() const {
    std::vector<std::size_t> count(ids_.size());
    for (auto const& buckets : buckets_of_block_) {
      for (std::size_t k : buckets) ++count[k];
    }
    return count;
  }

  Token post(std::size_t bucket, MicroId micro) {
    return builder_.post({.transfer = Transfer::collective, .micro = micro, .what = what_, .axes = axes_, .bucket = ids_[bucket]});
  }

  /// All gradients of an update are complete and reduced: where its decision is deferred, this lane gives what others need for it.
  void finish_gradients() {
    if (!defers_) return;
    for (TiedUnit const& unit : shared_) builder_.post_deferred(slots_of(unit.unit));
    if (lane_ > 0) builder_.post_deferred(part());
  }

  /// Copies an action; before a tie, the slots that other lanes hold are fetched, before a deferred decision their parts of it.
  void copy(Action const& action) {
    if (action.what == Do::tie && std::ranges::find(shared_, action.unit, &TiedUnit::unit) != shared_.end()) {
      defers_ ? builder_.wait_deferred(slots_of(action.unit)) : builder_.wait(builder_.post(slots_of(action.unit)));
    }
    if (action.what == Do::decide && defers_) {
      if (lane_ == 0) builder_.post_deferred(part());
      builder_.wait_deferred(part());
    }
    builder_.copy(action);
  }

  static Posting slots_of(UnitId unit) {
    return {.transfer = Transfer::collective, .what = Collective::all_gather, .group = tied_group(unit), .unit = unit};
  }
  static Posting part() { return {.transfer = Transfer::collective, .what = Collective::all_reduce, .group = decision_group}; }

  LaneBuilder& builder_;
  Axes axes_;
  Collective what_;
  int lane_;
  Overlap overlap_;
  bool defers_;
  std::vector<TiedUnit> shared_;  // tied units of this lane that others hold too
  std::vector<BucketId> ids_;
  std::vector<std::vector<std::size_t>> buckets_of_block_;  // empty lists for blocks of other lanes
};

}  // namespace

void reduce_gradients(LaneBuilder& builder, Schedule const& schedule, std::vector<BlockShape> const& blocks, int lane, Overlap overlap) {
  Reductions reductions(builder, schedule, blocks, lane, overlap);
  bool const every_micro = schedule.reduced_over != 0 && schedule.sum.inside == Inside::replicas;
  bool const pieces = schedule.sharing == Sharing::gradients || schedule.sharing == Sharing::parameters;
  expect(!pieces || every_micro, "sums that are kept in pieces are reduced at every micro-batch");
  if (pieces) return reductions.block_by_block();
  every_micro ? reductions.once_per_micro() : reductions.once_per_update();
}

}  // namespace shardmark
