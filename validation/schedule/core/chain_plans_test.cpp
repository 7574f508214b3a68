// Plans of recomputation against a search that knows executions alone, against a replay of their memory, and against Revolve.

#include "schedule/chain_plans.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <queue>
#include <random>
#include <tuple>

#include "planners.hpp"
#include "schedule/check.hpp"

namespace shardmark::test {
namespace {

using Chain = std::vector<ChainBlock>;

/// Where an execution stands: which inputs and stashes are held, the block whose input the latest run made (-1: dropped), and the block
/// whose backward comes next.
struct State {
  std::uint64_t inputs = 1, stashes = 0;
  int head = -1, backward = 0;
  auto operator<=>(State const&) const = default;
};

bool has(std::uint64_t set, int block) { return ((set >> block) & 1) != 0; }

std::int64_t live_bytes(Chain const& chain, State const& s) {
  std::int64_t bytes = s.backward >= 0 ? chain[std::size_t(s.backward)].gradient_bytes : 0;
  for (int b = 0; b < int(chain.size()); ++b) {
    if (has(s.stashes, b)) bytes += chain[std::size_t(b)].stash_bytes;
    bool const held = has(s.inputs, b) || s.head == b;
    if (b > 0 && held && !has(s.stashes, b - 1)) bytes += chain[std::size_t(b) - 1].output_bytes;
  }
  return bytes;
}

std::int64_t peak_of_backward(Chain const& chain, State const& s) {
  ChainBlock const& b = chain[std::size_t(s.backward)];
  return live_bytes(chain, s) - b.stash_bytes + b.held_bytes + b.backward_peak;
}

std::int64_t peak_of_run(Chain const& chain, State const& before, int block, Kept keeps) {
  ChainBlock const& b = chain[std::size_t(block)];
  return live_bytes(chain, before) + (keeps == Kept::stash ? b.stash_peak : b.light_peak);
}

/// Runs `block`, whose input is there. Whatever is kept stays until its backward.
State after_run(Chain const& chain, State s, int block, Kept keeps) {
  if (keeps != Kept::nothing) s.inputs |= std::uint64_t(1) << block;  // a stash needs its block's input too
  if (keeps == Kept::stash) s.stashes |= std::uint64_t(1) << block;
  s.head = block + 1 < int(chain.size()) ? block + 1 : -1;
  return s;
}

State after_backward(State s) {
  s.inputs &= ~(std::uint64_t(1) << s.backward);
  s.stashes &= ~(std::uint64_t(1) << s.backward);
  if (s.head >= s.backward) s.head = -1;
  --s.backward;
  return s;
}

/// Least seconds of recomputation within `budget`, by Dijkstra's search over states; negative: none fits.
double least_by_search(Chain const& chain, std::int64_t budget) {
  using Entry = std::pair<double, State>;
  std::priority_queue<Entry, std::vector<Entry>, std::greater<>> open;
  std::map<State, double> best;
  auto const reach = [&](double seconds, State const& s) {
    auto const [at, fresh] = best.try_emplace(s, seconds);
    if (!fresh && at->second <= seconds) return;
    at->second = seconds;
    open.emplace(seconds, s);
  };
  reach(0, {.head = 0, .backward = int(chain.size()) - 1});
  double once = 0;
  for (ChainBlock const& block : chain) once += block.forward_seconds;
  while (!open.empty()) {
    auto const [seconds, s] = open.top();
    open.pop();
    if (best[s] < seconds) continue;
    if (s.backward < 0) return seconds - once;
    if (has(s.stashes, s.backward)) {
      State dropped = s;
      dropped.head = -1;
      if (peak_of_backward(chain, dropped) <= budget) reach(seconds, after_backward(dropped));
    }
    for (int block = 0; block <= s.backward; ++block) {
      if ((!has(s.inputs, block) && s.head != block) || has(s.stashes, block)) continue;
      State from = s;
      from.head = block;
      for (Kept keeps : {Kept::stash, Kept::input, Kept::nothing})
        if (peak_of_run(chain, from, block, keeps) <= budget)
          reach(seconds + chain[std::size_t(block)].forward_seconds, after_run(chain, from, block, keeps));
    }
  }
  return -1;
}

struct Replayed {
  std::int64_t peak = 0;
  double seconds = 0;           // of recomputations
  std::vector<int> light_runs;  // of each block, those that keep no stash
};

/// What a plan comes to, run by run.
Replayed replayed(Chain const& chain, ChainPlan const& plan) {
  Replayed out;
  out.light_runs.resize(chain.size());
  State s{.head = 0, .backward = int(chain.size()) - 1};
  auto const run = [&](int block, Kept keeps) {
    EXPECT_TRUE(has(s.inputs, block) || s.head == block) << "block " << block << " has no input";
    EXPECT_FALSE(has(s.stashes, block));
    s.head = block;
    out.peak = std::max(out.peak, peak_of_run(chain, s, block, keeps));
    if (keeps != Kept::stash) ++out.light_runs[std::size_t(block)];
    s = after_run(chain, s, block, keeps);
  };
  for (int b = 0; b < int(chain.size()); ++b) run(b, plan.forward[std::size_t(b)]);
  for (int b = int(chain.size()) - 1; b >= 0; --b) {
    for (RunAgain const& again : plan.before[std::size_t(b)]) {
      run(again.block, again.keeps);
      out.seconds += chain[std::size_t(again.block)].forward_seconds;
    }
    EXPECT_TRUE(has(s.stashes, b)) << "backward " << b;
    out.peak = std::max(out.peak, peak_of_backward(chain, s));
    s = after_backward(s);
  }
  return out;
}

/// Whole numbers, so that sums of seconds are exact; some blocks have tiny inputs, some huge stashes, some nothing at all.
Chain random_chain(std::mt19937& random, int blocks) {
  auto const between = [&](int low, int high) { return std::uniform_int_distribution<int>(low, high)(random); };
  Chain chain;
  for (int b = 0; b < blocks; ++b) {
    ChainBlock block;
    block.forward_seconds = between(0, 9);
    block.output_bytes = b + 1 < blocks ? between(0, 12) : 0;
    block.stash_bytes = block.output_bytes + between(0, between(0, 3) == 0 ? 60 : 15);
    block.stash_peak = block.stash_bytes + between(0, 6);
    block.light_peak = block.output_bytes + between(0, 6);
    block.held_bytes = block.stash_bytes - between(0, int(block.output_bytes));
    block.gradient_bytes = b + 1 < blocks ? block.output_bytes : 0;
    block.backward_peak = between(0, 9);
    chain.push_back(block);
  }
  return chain;
}

/// Every point of the curve is what the search finds at its budget, and one byte less gives the point before it.
void expect_optimal(Chain const& chain, std::size_t stride) {
  ChainPlans const plans(chain);
  auto const front = plans.front();
  for (std::size_t i = 0; i < front.size(); i += stride) {
    EXPECT_EQ(least_by_search(chain, front[i].peak_bytes), front[i].again_seconds);
    EXPECT_EQ(least_by_search(chain, front[i].peak_bytes - 1), i > 0 ? front[i - 1].again_seconds : -1);
  }
  EXPECT_EQ(front.back().again_seconds, 0) << "with enough memory, nothing is run again";
}

TEST(ChainPlans, AreOptimalAgainstASearchOverExecutions) {
  std::mt19937 random(5);
  for (int trial = 0; trial < 120; ++trial) expect_optimal(random_chain(random, 1 + trial % 6), 1);
  for (int blocks : {7, 8}) expect_optimal(random_chain(random, blocks), 3);
}

TEST(ChainPlans, AreOptimalForTenBlocks) {
  std::mt19937 random(11);
  Chain const chain = random_chain(random, 10);
  auto const front = ChainPlans(chain).front();
  ASSERT_GT(front.size(), 5U);
  ASSERT_LT(front.size(), ChainPlans::most_points);
  for (std::size_t i : {std::size_t(0), front.size() / 3}) EXPECT_EQ(least_by_search(chain, front[i].peak_bytes), front[i].again_seconds);
}

TEST(ChainPlans, SayWhatTheyComeToInMemoryAndTime) {
  std::mt19937 random(3);
  for (int trial = 0; trial < 200; ++trial) {
    Chain const chain = random_chain(random, 1 + trial % 14);
    ChainPlans const plans(chain);
    for (auto const& point : plans.front()) {
      auto const plan = plans.within(point.peak_bytes);
      ASSERT_TRUE(plan);
      Replayed const seen = replayed(chain, *plan);
      EXPECT_EQ(seen.peak, plan->peak_bytes);
      EXPECT_EQ(seen.peak, point.peak_bytes);
      EXPECT_EQ(seen.seconds, point.again_seconds);
      EXPECT_EQ(plan->again_seconds, point.again_seconds);
    }
    EXPECT_FALSE(plans.within(plans.front().front().peak_bytes - 1));
    EXPECT_EQ(plans.within(1 << 30)->again_seconds, 0);
  }
}

std::int64_t choose(int n, int k) {
  if (k > n) return 0;
  std::int64_t out = 1;
  for (int i = 1; i <= k; ++i) out = out * (n - k + i) / i;
  return out;
}

// Griewank and Walther: with c inputs at a time, l steps take r l - C(c+r, c+1) runs besides those that are differentiated, where r is the
// least with C(c+r, c) >= l, and no step is advanced more than r times.
TEST(ChainPlans, AreRevolvesOnEqualBlocks) {
  constexpr std::int64_t stash = 100;  // two never fit
  for (int slots = 1; slots <= 5; ++slots)
    for (int steps = 1; steps <= 36; ++steps) {
      Chain chain(std::size_t(steps), ChainBlock{1, 1, stash, stash, 1, stash, 0, 0});
      chain.back().output_bytes = 0;
      int repeats = 0;
      while (choose(slots + repeats, slots) < steps) ++repeats;
      auto const plan =
          ChainPlans(chain).within(stash + slots);  // the chain's input is a slot beside the budget; Revolve's current state is none
      ASSERT_TRUE(plan);
      EXPECT_EQ(plan->again_seconds, double(repeats * steps - choose(slots + repeats, slots + 1))) << slots << " slots, " << steps;
      auto const runs = replayed(chain, *plan).light_runs;
      if (choose(slots + repeats, slots) == steps) {
        EXPECT_EQ(*std::ranges::max_element(runs), repeats) << slots << " slots, " << steps;
      }
    }
}

TEST(ChainPlans, ArePartOfSchedulesThatPassTheChecker) {
  std::mt19937 random(9);
  for (int trial = 0; trial < 20; ++trial) {
    int const count = 1 + trial % 7;
    Chain const chain = random_chain(random, count);
    ChainPlans const plans(chain);
    auto const blocks = test::chain(3 * count);
    for (Schedule const& coarse : {plan_gpipe({3, 4}), plan_1f1b({3, 4}), plan_pipedream({3, 1}, Delay::stash)})
      for (auto const& point : plans.front()) {
        Schedule const plain = refine(coarse, blocks, even_partition(coarse, count));
        ChainPlan const plan = *plans.within(point.peak_bytes), again = from_input(plan, plans.forward_seconds());
        for (ChainPlan const& each : {plan, again}) {
          Schedule const schedule = recompute(plain, std::vector<ChainPlan>(3, each));
          EXPECT_NO_THROW(check(schedule, blocks)) << coarse.name;
          EXPECT_NO_THROW(check(lower(schedule, blocks, 0, Overlap::on), blocks)) << coarse.name;
        }
        EXPECT_EQ(again.again_seconds, replayed(chain, again).seconds);
      }
  }
}

}  // namespace
}  // namespace shardmark::test
