#include "schedule/chain_plans.hpp"

#include <algorithm>
#include <utility>

#include "base/error.hpp"

namespace shardmark {

ChainPlans::ChainPlans(std::vector<ChainBlock> chain) : chain_(std::move(chain)), fronts_(chain_.size() * chain_.size()) {
  int const blocks = int(chain_.size());
  expect(blocks > 0, "a chain has a block");
  seconds_before_.push_back(0);
  for (ChainBlock const& block : chain_) seconds_before_.push_back(seconds_before_.back() + block.forward_seconds);
  for (int length = 1; length <= blocks; ++length)
    for (int first = 0; first + length <= blocks; ++first) {
      int const last = first + length - 1;
      Front points;
      add_stashing(first, last, points);
      for (int split = first + 1; split <= last; ++split) add_split(first, split, last, points);
      prune(points);
      fronts_[std::size_t(first) * chain_.size() + std::size_t(last)] = std::move(points);
    }
}

/// The first block keeps its stash; its backward comes last.
void ChainPlans::add_stashing(int first, int last, Front& out) const {
  ChainBlock const& block = chain_[std::size_t(first)];
  std::int64_t const arriving = chain_[std::size_t(last)].gradient_bytes;  // waits from the beginning
  std::int64_t const floor = std::max(arriving + block.stash_peak, block.held_bytes + block.gradient_bytes + block.backward_peak);
  if (first == last) return out.push_back({floor, block.forward_seconds});
  Front const& behind = of(first + 1, last);
  for (std::size_t i = 0; i < behind.size(); ++i)
    out.push_back({std::max(floor, block.stash_bytes + behind[i].bytes), block.forward_seconds + behind[i].seconds, -1, std::int32_t(i)});
}

/// Most above the segment's input while its blocks before `end` run and keep nothing.
std::int64_t ChainPlans::sweep_peak(int first, int end) const {
  std::int64_t most = 0, input = 0;
  for (int b = first; b < end; ++b) {
    most = std::max(most, input + chain_[std::size_t(b)].light_peak);
    input = chain_[std::size_t(b)].output_bytes;
  }
  return most;
}

/// Forward up to `split` keeping nothing but that block's input; what lies behind, then what lies before, from the segment's input again.
void ChainPlans::add_split(int first, int split, int last, Front& out) const {
  std::int64_t const input = chain_[std::size_t(split) - 1].output_bytes;
  std::int64_t const floor = chain_[std::size_t(last)].gradient_bytes + sweep_peak(first, split);
  double const sweep = seconds_before_[std::size_t(split)] - seconds_before_[std::size_t(first)];
  Front const &behind = of(split, last), &before = of(first, split - 1);
  // Both parts get the same memory, one after the other: at every budget the best of each.
  std::size_t i = 0, j = 0;
  for (;;) {
    std::int64_t const bytes = std::max(input + behind[i].bytes, before[j].bytes);
    while (i + 1 < behind.size() && input + behind[i + 1].bytes <= bytes) ++i;
    while (j + 1 < before.size() && before[j + 1].bytes <= bytes) ++j;
    out.push_back({std::max(bytes, floor), sweep + behind[i].seconds + before[j].seconds, split, std::int32_t(i), std::int32_t(j)});
    bool const more_behind = i + 1 < behind.size(), more_before = j + 1 < before.size();
    if (!more_behind && !more_before) return;
    if (more_behind && (!more_before || input + behind[i + 1].bytes <= before[j + 1].bytes))
      ++i;
    else
      ++j;
  }
}

void ChainPlans::prune(Front& points) {
  std::ranges::sort(points, [](Best const& a, Best const& b) { return std::pair(a.bytes, a.seconds) < std::pair(b.bytes, b.seconds); });
  Front best;
  for (Best const& point : points)
    if (best.empty() || point.seconds < best.back().seconds) best.push_back(point);
  if (best.size() > most_points) {
    Front thinned;
    for (std::size_t i = 0; i < most_points; ++i) thinned.push_back(best[i * (best.size() - 1) / (most_points - 1)]);
    best = std::move(thinned);
  }
  points = std::move(best);
}

std::vector<ChainPlans::Point> ChainPlans::front() const {
  double const once = forward_seconds();
  std::vector<Point> out;
  for (Best const& best : of(0, int(chain_.size()) - 1)) out.push_back({best.bytes, best.seconds - once});
  return out;
}

/// Follows the choices of one plan.
class ChainPlans::Writer {
 public:
  explicit Writer(ChainPlans const& plans) : plans_(plans) {
    plan_.forward.resize(plans.chain_.size());
    plan_.before.resize(plans.chain_.size());
  }

  ChainPlan write(std::size_t point) {
    int const last = int(plans_.chain_.size()) - 1;
    Best const& best = plans_.of(0, last)[point];
    plan_.peak_bytes = best.bytes;
    plan_.again_seconds = best.seconds - plans_.forward_seconds();
    segment(0, last, std::int32_t(point));
    return std::move(plan_);
  }

 private:
  /// Forward from `first`, and backward down to it.
  void segment(int first, int last, std::int32_t point) {
    Best const& best = plans_.of(first, last)[std::size_t(point)];
    if (best.split < 0) {
      run(first, Kept::stash);
      if (first < last) segment(first + 1, last, best.behind);
      plan_.before[std::size_t(first)] = std::exchange(waiting_, {});
      return;
    }
    for (int b = first; b < best.split; ++b) run(b, b == first ? Kept::input : Kept::nothing);
    segment(best.split, last, best.behind);
    segment(first, best.split - 1, best.before);
  }

  /// A block's first run is its forward; those that come later wait for the backward behind them.
  void run(int block, Kept keeps) {
    if (block == forwarded_) {
      plan_.forward[std::size_t(block)] = keeps;
      ++forwarded_;
    } else {
      waiting_.push_back({block, keeps});
    }
  }

  ChainPlans const& plans_;
  ChainPlan plan_;
  std::vector<RunAgain> waiting_;
  int forwarded_ = 0;  // the next block that has not been forwarded
};

std::optional<ChainPlan> ChainPlans::within(std::int64_t budget_bytes) const {
  Front const& front = of(0, int(chain_.size()) - 1);
  auto const over = std::ranges::find_if(front, [&](Best const& best) { return best.bytes > budget_bytes; });
  if (over == front.begin()) return std::nullopt;
  return Writer(*this).write(std::size_t(over - front.begin()) - 1);
}

ChainPlan from_input(ChainPlan plan, double forward_seconds) {
  std::vector<RunAgain> runs;
  for (std::size_t b = 0; b < plan.forward.size(); ++b) {
    runs.push_back({int(b), plan.forward[b]});
    plan.forward[b] = b == 0 ? Kept::input : Kept::nothing;
  }
  plan.before.back().insert(plan.before.back().begin(), runs.begin(), runs.end());
  plan.again_seconds += forward_seconds;
  return plan;
}

namespace {

std::vector<Action> planned(std::vector<Action> const& section, ChainPlan const& plan, int first) {
  std::vector<Action> out;
  for (Action action : section) {
    auto const at = std::size_t(action.chunk.v - first);
    if (action.what == Do::forward) action.keeps = plan.forward.at(at);
    if (action.what == Do::backward || action.what == Do::backward_input)
      for (RunAgain const& again : plan.before.at(at))
        out.push_back({.what = Do::recompute,
                       .chunk = {first + again.block},
                       .micro = action.micro,
                       .version = action.version,
                       .keeps = again.keeps});
    out.push_back(action);
  }
  return out;
}

}  // namespace

Schedule recompute(Schedule const& refined, std::vector<ChainPlan> const& of_lane) {
  expect(refined.form == Form::refined, "recomputation is a matter of blocks: refine() comes first, lower() later");
  expect(of_lane.size() == refined.lanes.size(), "a plan for each lane");
  Schedule out = refined;
  auto const& lanes = refined.lane_of_chunk;
  for (std::size_t lane = 0; lane < of_lane.size(); ++lane) {
    auto const first = std::ranges::find(lanes, int(lane));
    auto const end = std::find_if(first, lanes.end(), [&](int other) { return other != int(lane); });
    expect(std::find(end, lanes.end(), int(lane)) == lanes.end(), "a lane's blocks are one piece of the chain");
    expect(std::size_t(end - first) == of_lane[lane].forward.size(), "a plan has each of its lane's blocks");
    for (Section section : sections) {
      std::vector<Action>& actions = out.lanes[lane][section];
      actions = planned(actions, of_lane[lane], int(first - lanes.begin()));
    }
  }
  return out;
}

}  // namespace shardmark
