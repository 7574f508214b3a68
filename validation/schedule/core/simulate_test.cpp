#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <tuple>
#include <utility>

#include "planners.hpp"

namespace shardmark::test {
namespace {

using testing::HasSubstr;

template <class Body>
void over_grid(int least_micros_per_stage, Body&& body) {
  for (ChunkSeconds times : {ChunkSeconds{1, 1, 1}, {2, 3, 1}, {1, 2, 2}, {3, 2, 1}, {5, 6, 4}}) {
    for (int stages : {1, 2, 3, 4, 6}) {
      for (int micros = std::max(1, least_micros_per_stage * stages); micros <= 13; ++micros) body(stages, micros, times);
    }
  }
}

TEST(Simulate, UnitMakespanOfGPipeAnd1F1B) {
  over_grid(0, [](int stages, int micros, ChunkSeconds) {
    Costs const unit = compute_only({1, 1, 0});
    EXPECT_EQ(simulate(plan_gpipe({stages, micros}), unit).makespan, 2 * (micros + stages - 1));
    EXPECT_EQ(simulate(plan_1f1b({stages, micros}), unit).makespan, 2 * (micros + stages - 1));
    EXPECT_EQ(simulate(lowered(plan_1f1b({stages, micros}), 1).schedule, unit).makespan, 2 * (micros + stages - 1))
        << "messages that take no time change nothing";
  });
}

// Unequal chunks and a link, by hand. 1f1b, p=2, m=2; an activation of 8 bytes takes 1 + 8/4 = 3, so does its gradient:
//   stage 0 | F0: 0-2  F1: 2-4              B0: 17-20  B1: 26-29
//   stage 1 |          F0: 5-10  B0: 10-14  F1: 14-19  B1: 19-23
TEST(Simulate, UnequalChunksAndALink) {
  auto const [schedule, blocks] = lowered(plan_1f1b({2, 2}), 1);
  Costs const costs = costs_of({{.forward = 2, .input = 1, .weight = 2}, {.forward = 5, .input = 3, .weight = 1}},
                               {.link = {.alpha_seconds = 1, .bytes_per_second = 4}, .edge_bytes = {0, 8}});
  Timeline const timeline = simulate(schedule, costs);
  EXPECT_EQ(timeline.makespan, 29);
  EXPECT_EQ(timeline.lanes[0].busy, 10);
  EXPECT_EQ(timeline.lanes[0].lane_idle, 19);
  EXPECT_EQ(timeline.lanes[0].barrier_idle, 19);
  EXPECT_EQ(timeline.lanes[1].busy, 18);
  EXPECT_EQ(timeline.lanes[1].barrier_idle, 11);
  EXPECT_EQ(timeline.barrier_idle(), 19);
}

/// The makespan that the order of the lanes allows when a message takes `latency` and nothing else delays it.
double makespan_of_order(Schedule const& coarse, ChunkSeconds seconds, double latency) {
  std::map<std::tuple<bool, int, int>, double> made;  // (forward, chunk, micro-batch)
  std::vector<std::size_t> at(coarse.lanes.size());
  std::vector<double> clock(coarse.lanes.size());
  for (bool moved = true; std::exchange(moved, false);) {
    for (std::size_t lane = 0; lane < at.size(); ++lane) {
      for (; at[lane] < coarse.lanes[lane].body.size(); ++at[lane], moved = true) {
        Action const& action = coarse.lanes[lane].body[at[lane]];
        bool const forward = action.what == Do::forward;
        bool const moves = forward || action.what == Do::backward || action.what == Do::backward_input;
        int const source = action.chunk.v + (forward ? -1 : 1);
        if (moves && source >= 0 && source < int(coarse.lane_of_chunk.size())) {
          auto const input = made.find({forward, source, action.micro.v});
          if (input == made.end()) break;
          bool const crosses = coarse.lane_of_chunk[std::size_t(source)] != int(lane);
          clock[lane] = std::max(clock[lane], input->second + (crosses ? latency : 0));
        }
        clock[lane] += seconds.of(action);
        if (moves) made[{forward, action.chunk.v, action.micro.v}] = clock[lane];
      }
    }
  }
  return *std::ranges::max_element(clock);
}

TEST(Simulate, LoweredMessagesTravelWhileLanesCompute) {
  for (NamedPlanner const& planner : all_planners()) {
    for (PipelineShape shape : {PipelineShape{2, 8}, {4, 8}, {4, 9}, {8, 16}}) {
      shape.chunks_per_stage = planner.chunks.back() == 1 ? 1 : 2;
      Schedule const coarse = planner.plan(shape);
      if (!coarse.synchronous()) continue;
      for (int blocks_per_chunk : {1, 3}) {
        double const share = blocks_per_chunk, latency = 0.25;
        Costs costs = compute_only({1 / share, 1 / share, 1 / share});
        costs.transfer = [latency](Posting const& posting, Schedule const&) {
          return posting.transfer == Transfer::collective ? 0.0 : latency;
        };
        EXPECT_NEAR(simulate(lowered(coarse, blocks_per_chunk).schedule, costs).makespan, makespan_of_order(coarse, {1, 1, 1}, latency),
                    1e-9)
            << planner.test_name << shape.stages << ' ' << shape.micros << ' ' << blocks_per_chunk;
      }
    }
  }
}

TEST(Simulate, RecomputationAndSplitHalvesHaveTheirOwnCosts) {
  Schedule schedule = with_recomputation(plan_zero_bubble({1, 2}, ZeroBubble::h1));
  Costs const costs = costs_of({{.forward = 2, .input = 3, .weight = 5, .recompute = 7}});
  EXPECT_EQ(simulate(schedule, costs).makespan, 2 * (2 + 3 + 5 + 7));
}

TEST(Simulate, AReductionTakesWhatARingNeeds) {
  auto const [schedule, blocks] = lowered(plan_sequential("ddp", 1), 1);
  Costs const costs = costs_of({{}}, {.link = {.alpha_seconds = 1, .bytes_per_second = 100}, .element_bytes = 8, .replicas = 4});
  double const bytes = 8.0 * double(blocks[0].elements[0]);
  EXPECT_DOUBLE_EQ(simulate(schedule, costs).exposed(), 2 * 3 * (1 + bytes / 4 / 100));
}

TEST(Simulate, AsynchronousPipelineHasNoIdleTimeInSteadyState) {
  Schedule const schedule = plan_pipedream({4, 1}, Delay::stash);
  Costs const unit = compute_only({1, 1, 0});
  EXPECT_EQ(simulate(schedule, unit, 40).makespan - simulate(schedule, unit, 30).makespan, 10 * 2);
}

/// Parts are given as soon as they are complete, and what is decided is needed by what comes from the first stage anyway: at any costs.
TEST(Simulate, NoStageWaitsLongerForADeferredDecision) {
  std::mt19937 random(7);
  std::uniform_int_distribution<int> seconds(1, 9);
  for (int stages = 2; stages <= 8; ++stages) {
    for (Delay delay : {Delay::vertical, Delay::two_buffers}) {
      std::vector<ChunkSeconds> chunks;
      for (int s = 0; s < stages; ++s) chunks.push_back({double(seconds(random)), double(seconds(random)), double(seconds(random))});
      PipelineShape const shape{stages, stages + 2};
      for (Tied tied : {Tied::no, Tied::yes}) {
        auto const [joint, blocks] = lowered(plan_joint(shape, delay), 1, tied);
        Schedule const alone = lowered(plan_pipedream(shape, delay), 1).schedule;
        for (int windows : {1, stages, 3 * stages})
          EXPECT_EQ(simulate(joint, costs_of(chunks), windows).makespan, simulate(alone, costs_of(chunks), windows).makespan)
              << stages << ' ' << joint.name << ' ' << windows;
      }
    }
  }
}

/// DDP with buckets of random sizes: communication of a bucket starts when it is complete and the one before it has ended.
struct OverlappedRun {
  Schedule schedule;
  std::vector<BlockShape> blocks;
  std::vector<double> backward_seconds;
  double forward_seconds = 1;
};

OverlappedRun random_ddp(std::mt19937& random) {
  std::uniform_int_distribution<int> count(1, 12), size(1, 1000);
  OverlappedRun run;
  run.blocks = chain(count(random));
  for (auto& block : run.blocks) {
    block.elements = {size(random)};
    run.backward_seconds.push_back(size(random));
  }
  Schedule schedule = refine(plan_sequential("ddp", 1), run.blocks, {0, int(run.blocks.size())});
  schedule = bucket(std::move(schedule), run.blocks, {.cap_bytes = 4 * size(random), .first_cap_bytes = 4 * size(random)});
  run.schedule = lower(std::move(schedule), run.blocks, axes(Axis::data), Overlap::on);
  return run;
}

TEST(Simulate, ExposedCommunicationOfDdpIsTheClosedForm) {
  std::mt19937 random(7);
  AlphaBeta const link{3, 16};
  int const ranks = 4;
  for (int trial = 0; trial < 200; ++trial) {
    OverlappedRun const run = random_ddp(random);
    Costs costs;
    costs.action = [&](Action const& action, int) {
      if (action.what == Do::forward) return run.forward_seconds;
      return action.what == Do::backward ? run.backward_seconds[std::size_t(action.chunk.v)] : 0.0;
    };
    costs.transfer = [&](Posting const& posting, Schedule const& schedule) {
      return link.all_reduce_seconds(4.0 * double(schedule.buckets[0][std::size_t(posting.bucket.v)].elements), ranks);
    };
    // end_k = max(ready_k, end_(k-1)) + alpha' + c b_k / beta, with alpha' = 2 (n-1) alpha and c = 2 (n-1) / n.
    double ready = run.forward_seconds * double(run.blocks.size()), end = 0;
    int block = int(run.blocks.size());
    for (Bucket const& bucket : run.schedule.buckets[0]) {
      for (std::size_t i = 0; i < bucket.segments.size(); ++i) ready += run.backward_seconds[std::size_t(--block)];
      double const bytes = 4.0 * double(bucket.elements);
      end = std::max(ready, end) + 2 * (ranks - 1) * link.alpha_seconds + 2.0 * (ranks - 1) / ranks * bytes / link.bytes_per_second;
    }
    Timeline const timeline = simulate(run.schedule, costs);
    EXPECT_NEAR(timeline.exposed(), end - ready, 1e-9 * end) << trial;
    EXPECT_NEAR(timeline.makespan, end, 1e-9 * end) << trial;

    costs.overlap = Overlap::off;
    double all = 0;
    for (Bucket const& bucket : run.schedule.buckets[0]) all += link.all_reduce_seconds(4.0 * double(bucket.elements), ranks);
    EXPECT_NEAR(simulate(run.schedule, costs).exposed(), all, 1e-9 * all) << "nothing is hidden without progress";
  }
}

TEST(Simulate, SpansOfWaitsAddUpToTheExposedTime) {
  auto const [schedule, blocks] = lowered(plan_1f1b({3, 4}), 2);
  Costs costs = compute_only({1, 1, 1});
  costs.transfer = [](Posting const& posting, Schedule const&) { return posting.transfer == Transfer::collective ? 4.0 : 0.25; };
  Timeline const timeline = simulate(schedule, costs);
  std::vector<double> waited(3), clock(3);
  for (Span const& span : timeline.spans) {
    EXPECT_GE(span.begin, clock[std::size_t(span.lane)]) << "actions of a lane don't overlap";
    EXPECT_GE(span.end, span.begin);
    clock[std::size_t(span.lane)] = span.end;
    if (span.action.what == Do::wait) waited[std::size_t(span.lane)] += span.end - span.begin;
  }
  EXPECT_DOUBLE_EQ(*std::max_element(waited.begin(), waited.end()), timeline.exposed());
  EXPECT_GT(timeline.makespan, simulate(schedule, compute_only({1, 1, 1})).makespan);
}

TEST(Simulate, AMessageTakesItsTimeOnce) {
  auto const [schedule, blocks] = lowered(plan_gpipe({2, 1}), 1);
  Costs costs = compute_only({1, 1, 0});
  costs.transfer = [](Posting const& posting, Schedule const&) { return posting.transfer == Transfer::collective ? 0.0 : 10.0; };
  EXPECT_EQ(simulate(schedule, costs).makespan, 4 + 2 * 10);
}

TEST(Simulate, LanesDecideTogether) {
  auto const [schedule, blocks] = lowered(plan_gpipe({2, 1}), 1);
  Costs costs = compute_only({1, 1, 0});
  costs.action = [compute = costs.action](Action const& action, int lane) {
    return action.what == Do::decide ? (lane == 0 ? 0.0 : 5.0) : compute(action, lane);
  };
  EXPECT_EQ(simulate(schedule, costs).makespan, 4 + 5) << "lane 1 waits for lane 0's gradients before it decides";
}

TEST(Simulate, AScheduleThatIsStuckSaysSo) {
  Schedule schedule = plan_gpipe({2, 1});
  std::erase_if(schedule.lanes[0].body, [](Action const& action) { return action.what == Do::forward; });
  try {
    simulate(schedule, compute_only({1, 1, 0}));
    FAIL();
  } catch (BadSchedule const& problem) {
    EXPECT_THAT(problem.what(), HasSubstr("lane 0, body action 0"));
    EXPECT_THAT(problem.what(), HasSubstr("lane 1 needs what another lane never makes: forward chunk 1 micro 0"));
  }
}

}  // namespace
}  // namespace shardmark::test
