// Random valid schedules pass; random changes are refused or still end, and never break the checker.

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "planners.hpp"
#include "schedule/recompute.hpp"

namespace shardmark::test {
namespace {

class Random {
 public:
  explicit Random(unsigned seed) : engine_(seed) {}
  int between(int low, int high) { return std::uniform_int_distribution<int>(low, high)(engine_); }
  bool flip() { return between(0, 1) == 1; }

 private:
  std::mt19937 engine_;
};

Schedule random_plan(Random& random) {
  int const stages = random.between(1, 6), micros = random.between(1, 9);
  Schedule schedule = [&] {
    switch (random.between(0, 12)) {
      case 0:
        return plan_sequential("serial", SumShape{random.between(1, 4), micros});
      case 1:
        return plan_gpipe({stages, micros});
      case 2:
        return plan_1f1b({stages, micros});
      case 3:
        return plan_zero_bubble({stages, micros}, ZeroBubble::h1);
      case 4:
        return plan_pipedream({stages, 1}, Delay::stash);
      case 5:
        return plan_pipedream({stages, 1}, Delay::vertical);
      case 6:
        return plan_interleaved({stages, micros, random.between(1, 3)});
      case 7:
        return plan_zero_bubble({stages, micros}, ZeroBubble::h2);
      case 8:
        return plan_zero_bubble({stages, micros, 2}, ZeroBubble::v);
      case 9:
        return plan_model_parallel({stages, micros});
      case 10:
        return plan_joint({stages, 1}, Delay::vertical);
      case 11:
        return plan_joint({stages, stages + micros - 1}, Delay::two_buffers);
      default:
        return plan_pipedream({stages, stages + micros - 1}, Delay::two_buffers);
    }
  }();
  return random.flip() ? with_recomputation(schedule) : schedule;
}

/// Blocks with 0 to 3 segments, some of them slots of one unit when `tied`.
std::vector<BlockShape> random_blocks(Random& random, int count, Tied tied) {
  std::vector<BlockShape> blocks{std::size_t(count)};
  int unit = 1, slot = 0;
  for (BlockShape& block : blocks) {
    for (int i = random.between(0, 2); i > 0; --i) block.produces.push_back({{unit++}, 0});
    if (tied == Tied::yes && random.between(0, 3) == 0) block.produces.push_back({{0}, slot++});
    for (std::size_t i = 0; i < block.produces.size(); ++i) block.elements.push_back(random.between(1, 1000));
  }
  return blocks;
}

/// The unit that is tied begins in the first block, as deferred decisions need it.
void tie_from_the_first(std::vector<BlockShape>& blocks) {
  bool const there = std::ranges::count(blocks.front().produces, Segment{{0}, 0}) > 0;
  if (there) return;
  for (BlockShape& block : blocks) {
    for (Segment& segment : block.produces) segment.slot += segment.unit == UnitId{0} ? 1 : 0;
  }
  blocks.front().produces.push_back({{0}, 0});
  blocks.front().elements.push_back(5);
}

Lowered random_schedule(Random& random) {
  Schedule coarse = random_plan(random);
  coarse.sum.inside = random.between(0, 3) == 0 ? Inside::replicas : Inside::micros;
  std::vector<int> first{0};
  for (std::size_t c = 0; c < coarse.lane_of_chunk.size(); ++c) first.push_back(first.back() + random.between(1, 4));
  auto blocks = random_blocks(random, first.back(), can_tie(coarse));
  if (coarse.defers()) tie_from_the_first(blocks);
  for (BlockShape& block : blocks) block.forward_cost = random.between(0, 9), block.input_cost = random.between(0, 9);
  Schedule schedule = refine(coarse, blocks, first);
  bool const recomputes = std::ranges::any_of(coarse.lanes[0].body, [](Action const& action) { return action.what == Do::recompute; });
  if (!recomputes && random.flip()) schedule = recompute(schedule, recompute_every(random.between(1, 4)));
  BucketRule const rule{.cap_bytes = random.between(1, 9000), .first_cap_bytes = random.between(1, 4000), .last_alone = random.flip()};
  schedule = bucket(std::move(schedule), blocks, rule);
  Axes const over = random.between(0, 3) == 0 ? Axes(0) : axes(Axis::data);
  Matching const matching = random.flip() ? Matching::by_name : Matching::by_launch_order;
  Schedule out = lower(schedule, blocks, over, random.flip() ? Overlap::on : Overlap::off, matching);
  return {std::move(out), std::move(blocks)};
}

TEST(Fuzz, RandomValidSchedulesPass) {
  for (unsigned seed = 0; seed < 400; ++seed) {
    Random random(seed);
    auto const [schedule, blocks] = random_schedule(random);
    EXPECT_NO_THROW(check(schedule, blocks)) << "seed " << seed << '\n' << to_text(schedule);
  }
}

TEST(Fuzz, EveryStageOfTheWayPasses) {
  for (unsigned seed = 0; seed < 100; ++seed) {
    Random random(seed);
    Schedule const coarse = random_plan(random);
    EXPECT_NO_THROW(check(coarse, {})) << "seed " << seed << '\n' << to_text(coarse);
    auto const blocks = chain(int(coarse.lane_of_chunk.size()) * 2);
    EXPECT_NO_THROW(check(refine(coarse, blocks, even_partition(coarse, 2)), blocks)) << "seed " << seed;
  }
}

void change_at_random(Schedule& schedule, Random& random) {
  Lane& lane = schedule.lanes[std::size_t(random.between(0, int(schedule.lanes.size()) - 1))];
  auto& body = lane.body;
  auto& action = body[std::size_t(random.between(0, int(body.size()) - 1))];
  switch (random.between(0, 7)) {
    case 0:
      action.what = Do(random.between(0, int(Do::update)));
      break;
    case 1:
      action.chunk.v += random.between(-9, 9);
      break;
    case 2:
      action.micro.v += random.between(-9, 9);
      break;
    case 3:
      action.token.v += random.between(-9, 9);
      break;
    case 4:
      action.unit.v += random.between(-9, 9);
      break;
    case 5:
      std::swap(action, body[std::size_t(random.between(0, int(body.size()) - 1))]);
      break;
    case 6:
      action.version.v += random.between(-9, 9);
      break;
    default:
      if (lane.postings.empty()) break;
      Posting& posting = lane.postings[std::size_t(random.between(0, int(lane.postings.size()) - 1))];
      posting.peer += random.between(-2, 2);
      posting.edge.v += random.between(-2, 2);
      posting.micro.v += random.between(-2, 2);
      posting.bucket.v += random.between(-1, 1);
  }
}

TEST(Fuzz, RandomChangesNeverBreakTheChecker) {
  int refused = 0;
  for (unsigned seed = 0; seed < 2000; ++seed) {
    Random random(seed);
    auto [schedule, blocks] = random_schedule(random);
    change_at_random(schedule, random);
    try {
      check(schedule, blocks, 2);
    } catch (BadSchedule const&) {
      ++refused;
    }
  }
  EXPECT_GT(refused, 1000) << "most changes are faults; some touch what an action doesn't use";
}

}  // namespace
}  // namespace shardmark::test
