// Broken schedules, each of which the checker must refuse with a message that names the lane and the first bad action.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "planners.hpp"
#include "schedule/closed_forms.hpp"

namespace shardmark::test {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;

std::vector<Schedule> pipelines() {
  return {plan_gpipe({3, 4}),
          plan_1f1b({3, 4}),
          plan_zero_bubble({3, 4}, ZeroBubble::h1),
          plan_pipedream({3, 1}, Delay::stash),
          plan_pipedream({3, 4}, Delay::two_buffers),
          plan_joint({3, 1}, Delay::vertical),
          plan_joint({3, 4}, Delay::two_buffers),
          plan_zero_bubble({3, 5}, ZeroBubble::h2),
          plan_zero_bubble({2, 3, 2}, ZeroBubble::v),
          plan_interleaved({2, 3, 2}),
          with_recomputation(plan_1f1b({3, 4}))};
}

std::string problem_of(Schedule const& schedule, std::vector<BlockShape> const& blocks) {
  try {
    check(schedule, blocks);
  } catch (BadSchedule const& problem) {
    return problem.what();
  }
  return {};
}

/// Every single change of one kind, over all pipelines, lanes and sections. Returns how many there were.
int refuses_all(std::function<bool(Schedule&, std::vector<Action>&, std::size_t)> const& breaks) {
  int broken = 0;
  for (Schedule const& coarse : pipelines()) {
    auto const [good, blocks] = lowered(coarse, 2, can_tie(coarse));
    EXPECT_EQ(problem_of(good, blocks), "");
    for (std::size_t lane = 0; lane < good.lanes.size(); ++lane) {
      for (Section section : sections) {
        for (std::size_t i = 0; i < good.lanes[lane][section].size(); ++i) {
          Schedule bad = good;
          std::string const what = bad.name + ": " + to_string(bad.lanes[lane][section][i]);
          if (!breaks(bad, bad.lanes[lane][section], i)) continue;
          ++broken;
          std::string const problem = problem_of(bad, blocks);
          EXPECT_THAT(problem, ContainsRegex("lane [0-9]+, ((prologue|body|epilogue) action [0-9]+|at its end)"))
              << what << " on lane " << lane << " at " << i << " was let pass";
        }
      }
    }
  }
  return broken;
}

using Actions = std::vector<Action>;

TEST(Broken, EveryDroppedActionIsMissed) {
  int const broken = refuses_all([](Schedule&, Actions& actions, std::size_t i) {
    actions.erase(actions.begin() + std::ptrdiff_t(i));
    return true;
  });
  EXPECT_GT(broken, 1000);
}

TEST(Broken, EveryRepeatedActionIsRefused) {
  int const broken = refuses_all([](Schedule&, Actions& actions, std::size_t i) {
    actions.insert(actions.begin() + std::ptrdiff_t(i), actions[i]);
    return true;
  });
  EXPECT_GT(broken, 1000);
}

TEST(Broken, AWrongVersionIsRefused) {
  for (int change : {-1, 1}) {
    int const broken = refuses_all([change](Schedule& schedule, Actions& actions, std::size_t i) {
      bool const prologue = std::ranges::any_of(schedule.lanes, [&](Lane const& lane) { return &lane.prologue == &actions; });
      int const windows = prologue ? 0 : int(schedule.lanes.size()) + 1;  // the last that check() unrolls
      Version const before = shifted(actions[i], schedule, windows).version;
      actions[i].version.v += change;
      // Actions without a version have none here either; what comes out below 0 means the initial weights before and after.
      return before.valid() && shifted(actions[i], schedule, windows).version != before;
    });
    EXPECT_GT(broken, 100);
  }
}

TEST(Broken, OlderWeightsMustBeMeant) {
  auto [schedule, blocks] = lowered(plan_pipedream({3, 1}, Delay::vertical), 1);
  EXPECT_EQ(problem_of(schedule, blocks), "");
  schedule.weights = Weights::latest;
  EXPECT_THAT(problem_of(schedule, blocks), HasSubstr("a forward reads the latest version here"));
}

// The mutant "stale weight in backward": an asynchronous backward that reads the latest weights instead of its forward's.
TEST(Broken, case_69_BackwardWithoutItsStashedVersion) {
  auto [schedule, blocks] = lowered(plan_pipedream({3, 1}, Delay::stash), 1);
  for (Action& action : schedule.lanes[0].body) {
    if (action.what == Do::backward) action.version = {action.micro.v};
  }
  EXPECT_THAT(problem_of(schedule, blocks), HasSubstr("a backward must use the same"));
}

TEST(Broken, AForwardThatReadsAVersionFromTheFuture) {
  auto [schedule, blocks] = lowered(plan_pipedream({3, 1}, Delay::stash), 1);
  for (Action& action : schedule.lanes[0].body) {
    if (action.what == Do::forward || action.what == Do::backward) action.version.v += 1;
  }
  EXPECT_THAT(problem_of(schedule, blocks), HasSubstr("this version doesn't exist yet"));
}

/// The message that a post or wait stands for; nullptr: another action.
Posting* message_of(Schedule& schedule, Actions const& actions, std::size_t i) {
  if (actions[i].what != Do::post && actions[i].what != Do::wait) return nullptr;
  for (Lane& lane : schedule.lanes) {
    if (&lane.prologue != &actions && &lane.body != &actions && &lane.epilogue != &actions) continue;
    auto const posting = std::ranges::find(lane.postings, actions[i].token, &Posting::token);
    if (posting != lane.postings.end() && posting->transfer != Transfer::collective) return &*posting;
  }
  return nullptr;
}

/// The same of posts alone.
Posting* posted_by(Schedule& schedule, Actions const& actions, std::size_t i) {
  return actions[i].what == Do::post ? message_of(schedule, actions, i) : nullptr;
}

bool on_first_lane(Schedule& schedule, Actions const& actions) {
  return std::ranges::any_of(sections, [&](Section section) { return &schedule.lanes[0][section] == &actions; });
}

TEST(Broken, ADependencyTurnedRoundIsRefused) {
  int const broken = refuses_all([](Schedule& schedule, Actions& actions, std::size_t i) {
    if (i + 1 == actions.size()) return false;
    Posting const* const message = message_of(schedule, actions, i);
    bool const receives = message != nullptr && message->transfer == Transfer::receive;
    auto& a = actions[i];
    auto& b = actions[i + 1];
    auto const pair = [&](Do first, Do second) { return a.what == first && b.what == second; };
    bool const same = a.micro == b.micro;
    // A later lane has given its part of an earlier decision, so that a wait for that may come first.
    bool const ahead = message == nullptr && schedule.defers() && !on_first_lane(schedule, actions);
    bool const depends = (pair(Do::post, Do::wait) && a.token == b.token && !ahead) ||
                         (pair(Do::wait, Do::forward) && receives && !message->gradient && same) || (pair(Do::forward, Do::post) && same) ||
                         (pair(Do::forward, Do::forward) && same) || (pair(Do::backward, Do::fold) && same) ||
                         (pair(Do::backward_weight, Do::fold) && same) || pair(Do::tie, Do::decide) || pair(Do::decide, Do::update) ||
                         pair(Do::wait, Do::tie);
    if (depends) std::swap(a, b);
    return depends;
  });
  EXPECT_GT(broken, 300);
}

TEST(Broken, AMessageToTheWrongLaneOrEdgeIsRefused) {
  for (int change = 0; change < 5; ++change) {
    int const broken = refuses_all([change](Schedule& schedule, Actions& actions, std::size_t i) {
      Posting* const posting = posted_by(schedule, actions, i);
      if (posting == nullptr) return false;
      int const lanes = int(schedule.lanes.size());
      if (change == 0) posting->peer = (posting->peer + 1) % lanes;
      if (change == 1) posting->peer = lanes;
      if (change == 2) posting->edge.v += 1;
      if (change == 3) posting->gradient = !posting->gradient;
      if (change == 4) posting->transfer = posting->transfer == Transfer::send ? Transfer::receive : Transfer::send;
      return true;
    });
    EXPECT_GT(broken, 150) << change;
  }
}

// The mutant "send order reversed", at every place where two sends of a channel follow one another: the first is made behind the second.
TEST(Broken, EveryReversedPairOfSendsIsRefused) {
  int const broken = refuses_all([](Schedule& schedule, Actions& actions, std::size_t i) {
    Posting const* const first = posted_by(schedule, actions, i);
    if (first == nullptr || first->transfer != Transfer::send) return false;
    auto const is_second = [&](std::size_t j) {
      Posting const* const posting = posted_by(schedule, actions, j);
      return posting != nullptr && posting->transfer == Transfer::send && posting->edge == first->edge &&
             posting->gradient == first->gradient;
    };
    std::size_t second = i + 1;
    while (second < actions.size() && !is_second(second)) ++second;
    if (second == actions.size()) return false;
    Action const post = actions[i], wait{.what = Do::wait, .chunk = post.chunk, .micro = post.micro, .token = post.token};
    auto const behind = actions.begin() + std::ptrdiff_t(second) + 1;
    bool const waited = std::find(actions.begin() + std::ptrdiff_t(i), behind, wait) != behind;
    auto const place = actions.insert(behind, post);
    if (waited) actions.insert(place + 1, wait);
    actions.erase(actions.begin() + std::ptrdiff_t(i));
    if (waited) actions.erase(std::ranges::find(actions, wait));
    return true;
  });
  EXPECT_GT(broken, 100);
}

// The mutant "one weight version too many": refused where forwards promise the latest; older weights on purpose are a schedule of their
// own, whose versions then differ from what closed_forms() says.
TEST(Broken, case_69_OneVersionTooMany) {
  auto const older = [](Schedule schedule) {
    for (Lane& lane : schedule.lanes) {
      for (Section section : sections) {
        for (Action& action : lane[section]) {
          if (action.what == Do::forward || action.what == Do::backward) action.version.v -= 1;
        }
      }
    }
    return schedule;
  };
  EXPECT_THAT(problem_of(older(plan_pipedream({3, 1}, Delay::stash)), {}), HasSubstr("a forward reads the latest version here"));
  Proof const proof = check(older(plan_pipedream({3, 1}, Delay::vertical)), {});
  for (LaneFacts const& lane : proof.lanes) {
    EXPECT_EQ(lane.peak_versions, closed_forms(Pipeline::vertical, {3, 1}, {}).versions.front() + 1);
  }
}

/// The places of posts of sends of activations in a lane's body.
std::vector<std::size_t> activation_sends(Lane const& lane) {
  std::vector<std::size_t> found;
  for (std::size_t i = 0; i < lane.body.size(); ++i) {
    if (lane.body[i].what != Do::post) continue;
    Posting const& posting = postings_of(lane, lane.body[i].token).front();
    if (posting.transfer == Transfer::send && !posting.gradient) found.push_back(i);
  }
  return found;
}

// The mutant "send order reversed": both sends are made, but in an order that the receiver doesn't expect.
TEST(Broken, SendsInReversedOrderMismatchUnderFifo) {
  auto [schedule, blocks] = lowered(plan_gpipe({2, 3}), 1);
  Lane& lane = schedule.lanes[0];
  auto const sends = activation_sends(lane);
  ASSERT_EQ(sends.size(), 3u);
  Action const first = lane.body[sends[0]];
  lane.body.insert(lane.body.begin() + std::ptrdiff_t(sends[1]) + 1, first);
  lane.body.erase(lane.body.begin() + std::ptrdiff_t(sends[0]));
  EXPECT_THAT(problem_of(schedule, blocks), HasSubstr("message 0 of this channel is micro-batch"));
}

// The mutant "tags swapped": two messages exchange their names.
TEST(Broken, SwappedTagsAreRefused) {
  auto [schedule, blocks] = lowered(plan_gpipe({2, 3}), 1);
  Lane& lane = schedule.lanes[0];
  auto const sends = activation_sends(lane);
  auto posting = [&](std::size_t i) -> Posting& { return *std::ranges::find(lane.postings, lane.body[sends[i]].token, &Posting::token); };
  std::swap(posting(0).micro, posting(1).micro);
  EXPECT_THAT(problem_of(schedule, blocks), HasSubstr("what it sends has not been made"));
}

Schedule one_lane(std::vector<BlockShape> const& blocks, int micros) {
  Schedule schedule =
      bucket(refine(plan_sequential("ddp", micros), blocks, {0, int(blocks.size())}), blocks, {.cap_bytes = 1, .first_cap_bytes = 1});
  return lower(std::move(schedule), blocks, axes(Axis::data), Overlap::on);
}

TEST(Broken, AReductionBeforeTheLastFoldIsRefused) {
  auto const blocks = chain(3);
  Schedule schedule = one_lane(blocks, 4);
  auto& body = schedule.lanes[0].body;
  auto const post = std::ranges::find(body, Do::post, &Action::what);
  ASSERT_EQ((post - 1)->what, Do::fold);
  std::iter_swap(post, post - 1);
  EXPECT_THAT(problem_of(schedule, blocks), HasSubstr("chunk 2 has folded 3 of 4 leaves"));
}

// case 25 as a fault: the same bucket also reduced after an earlier micro-batch.
TEST(Broken, case_25_AReductionAtEveryMicroBatchIsRefused) {
  auto const blocks = chain(2);
  Schedule schedule = one_lane(blocks, 4);
  Lane& lane = schedule.lanes[0];
  Posting extra = lane.postings.front();
  extra.token = {lane.postings.back().token.v + 1};
  lane.postings.push_back(extra);
  auto const fold = std::ranges::find(lane.body, Do::fold, &Action::what);
  Action const both[] = {{.what = Do::post, .token = extra.token}, {.what = Do::wait, .token = extra.token}};
  lane.body.insert(fold + 1, std::begin(both), std::end(both));
  EXPECT_THAT(problem_of(schedule, blocks), HasSubstr("has folded 1 of 4 leaves"));
}

TEST(Broken, ABucketThatIsReducedTwiceInAnUpdateIsRefused) {
  auto const blocks = chain(2);
  Schedule schedule = one_lane(blocks, 2);
  Lane& lane = schedule.lanes[0];
  lane.postings.back().bucket = lane.postings.front().bucket;
  EXPECT_THAT(problem_of(schedule, blocks), HasSubstr("this bucket was reduced in this update before"));
}

TEST(Broken, ASegmentOutsideOfEveryBucketIsRefused) {
  auto const blocks = chain(3);
  Schedule schedule = one_lane(blocks, 2);
  schedule.buckets[0][1].segments.clear();
  EXPECT_THAT(problem_of(schedule, blocks), HasSubstr("is in no bucket"));
  schedule = one_lane(blocks, 2);
  schedule.buckets[0][1].segments.push_back(schedule.buckets[0][0].segments[0]);
  EXPECT_THAT(problem_of(schedule, blocks), HasSubstr("is in another bucket"));
}

TEST(Broken, SumsAndWindowsMustAgree) {
  auto const blocks = chain(2);
  Schedule schedule = one_lane(blocks, 4);
  schedule.leaves = {1, 3};
  EXPECT_THAT(problem_of(schedule, blocks), HasSubstr("a sum of 3 leaves, but 4 micro-batches an update"));
  schedule = one_lane(blocks, 4);
  schedule.versions_per_window = 3;
  EXPECT_THAT(problem_of(schedule, blocks), HasSubstr("can't share"));
}

TEST(Broken, MessagesNameLaneSectionActionAndIds) {
  auto [schedule, blocks] = lowered(plan_1f1b({3, 4}), 1);
  auto& body = schedule.lanes[2].body;
  auto const backward = std::ranges::find(body, Do::backward, &Action::what);
  std::string const place = "lane 2, body action " + std::to_string(backward - body.begin()) + " of repetition 0";
  backward->version = {3};
  EXPECT_THAT(problem_of(schedule, blocks), HasSubstr(place + ", backward chunk 2 micro 0 version 3: its forward read version 0"));
}

TEST(Broken, ATokenLeftOpenNamesItsPost) {
  auto [schedule, blocks] = lowered(plan_gpipe({2, 2}), 1);
  auto& body = schedule.lanes[1].body;
  Action const last_wait = *std::find_if(body.rbegin(), body.rend(), [](Action const& a) { return a.what == Do::wait; });
  std::erase(body, last_wait);
  EXPECT_THAT(problem_of(schedule, blocks), HasSubstr("nothing waits for this before the section ends"));
}

}  // namespace
}  // namespace shardmark::test
