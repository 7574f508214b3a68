// Schedules whose ranks share state (ZeRO): what is gathered and when, every single change refused, counts against closed forms.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "planners.hpp"
#include "schedule/sharing_forms.hpp"

namespace shardmark::test {
namespace {

using testing::ContainsRegex;
using testing::HasSubstr;

struct Shape {
  Sharing sharing;
  int blocks = 3, micros = 1;
  Tied tied = Tied::no;
  Overlap overlap = Overlap::on;
};

Lowered shared(Shape const& shape) {
  auto blocks = chain(shape.blocks, shape.tied);
  Schedule coarse = plan_sequential("zero", shape.micros);
  coarse.sharing = shape.sharing;
  if (shape.sharing == Sharing::gradients || shape.sharing == Sharing::parameters) coarse.sum.inside = Inside::replicas;
  Schedule schedule = bucket(refine(coarse, blocks, {0, shape.blocks}), blocks, {.cap_bytes = 1, .first_cap_bytes = 1});
  return {lower(schedule, blocks, axes(Axis::data), shape.overlap), blocks};
}

/// "f0 b0 ~0" forward, backward, fold; "g0 r0" posts of a gather and a reduce-scatter, in capitals when they are waited for; "-0" given
/// back; "u0" update.
std::string brief(Schedule const& schedule) {
  std::string out;
  Lane const& lane = schedule.lanes.front();
  for (Action const& action : lane.body) {
    std::string word(name(action.what));
    if (action.what == Do::post || action.what == Do::wait) {
      Posting const& posting = postings_of(lane, action.token).front();
      bool const gather = posting.what == Collective::all_gather;
      word = action.what == Do::post ? (gather ? "g" : "r") : (gather ? "G" : "R");
      word += std::to_string(gather ? posting.unit.v : schedule.buckets[0][std::size_t(posting.bucket.v)].segments[0].unit.v);
    } else if (action.what == Do::forward || action.what == Do::backward) {
      word = word.substr(0, 1) + std::to_string(action.chunk.v);
    } else if (action.what == Do::fold) {
      word = "~" + std::to_string(action.chunk.v);
    } else if (action.what == Do::release || action.what == Do::update) {
      word = (action.what == Do::update ? "u" : "-") + std::to_string(action.unit.v);
    }
    out += (out.empty() ? "" : " ") + word;
  }
  return out;
}

TEST(Sharing, Stage1ScattersOnceAndGathersWhatWasUpdated) {
  EXPECT_EQ(brief(shared({Sharing::optimizer, 2, 2}).schedule), "f0 f1 b1 ~1 b0 ~0 f0 f1 b1 ~1 r1 b0 ~0 r0 R1 R0 decide u0 g0 u1 g1 G0 G1");
}

TEST(Sharing, Stage2HoldsWholeLeavesOfTwoBlocksAtMost) {
  EXPECT_EQ(brief(shared({Sharing::gradients, 3, 1}).schedule),
            "f0 f1 f2 b2 r2 b1 r1 R2 ~2 b0 r0 R1 ~1 R0 ~0 decide u0 g0 u1 g1 u2 g2 G0 G1 G2");
  EXPECT_EQ(brief(shared({Sharing::gradients, 2, 1, Tied::no, Overlap::off}).schedule),
            "f0 f1 b1 r1 R1 ~1 b0 r0 R0 ~0 decide u0 g0 G0 u1 g1 G1");
}

TEST(Sharing, Stage3GathersOneBlockAheadAndKeepsWhatTheNextUseHas) {
  EXPECT_EQ(brief(shared({Sharing::parameters, 3, 1}).schedule),
            "g0 G0 g1 f0 -0 G1 g2 f1 -1 G2 f2 g1 b2 -2 r2 G1 g0 b1 -1 r1 R2 ~2 G0 b0 -0 r0 R1 ~1 R0 ~0 decide u0 u1 u2");
  EXPECT_EQ(brief(shared({Sharing::parameters, 2, 1, Tied::no, Overlap::off}).schedule),
            "g0 G0 f0 -0 g1 G1 f1 b1 -1 r1 R1 ~1 g0 G0 b0 -0 r0 R0 ~0 decide u0 u1");
}

std::string problem_of(Lowered const& lowered) {
  try {
    check(lowered.schedule, lowered.blocks);
  } catch (BadSchedule const& problem) {
    return problem.what();
  }
  return {};
}

std::vector<Shape> shapes() {
  std::vector<Shape> out;
  for (Sharing sharing : {Sharing::optimizer, Sharing::gradients, Sharing::parameters})
    for (int blocks : {1, 2, 3, 5})
      for (int micros : {1, 2, 3})
        for (Tied tied : {Tied::no, Tied::yes})
          for (Overlap overlap : {Overlap::on, Overlap::off})
            if (blocks > 1 || tied == Tied::no) out.push_back({sharing, blocks, micros, tied, overlap});
  return out;
}

TEST(Sharing, CountsAreTheClosedForms) {
  for (Shape const& shape : shapes()) {
    Lowered const lowered = shared(shape);
    ASSERT_EQ(problem_of(lowered), "");
    for (int ranks : {1, 2, 3, 7}) {
      auto const padded = [&](std::int64_t elements) { return (elements + ranks - 1) / ranks * ranks; };
      SharingForms counted;
      for (Action const& action : lowered.schedule.lanes[0].body) {
        if (action.what != Do::post) continue;
        Posting const& posting = postings_of(lowered.schedule.lanes[0], action.token).front();
        bool const gather = posting.what == Collective::all_gather;
        ++(gather ? counted.gathers : counted.reductions);
        (gather ? counted.gathered : counted.reduced) += padded(elements_of(posting, lowered.schedule));
      }
      SharingForms const forms = sharing_forms(shape.sharing, lowered.blocks, ranks, shape.micros);
      std::string const where = "stage " + std::to_string(int(shape.sharing)) + ", " + std::to_string(shape.blocks) + " blocks, " +
                                std::to_string(shape.micros) + " micro-batches, " + std::to_string(ranks) + " ranks";
      EXPECT_EQ(counted.reductions, forms.reductions) << where;
      EXPECT_EQ(counted.reduced, forms.reduced) << where;
      EXPECT_EQ(counted.gathers, forms.gathers) << where;
      EXPECT_EQ(counted.gathered, forms.gathered) << where;
    }
  }
}

TEST(Sharing, FormsOf57ParametersCountThePadding) {
  std::vector<BlockShape> const blocks{{.name = "u", .produces = {{{0}, 0}}, .elements = {57}, .boundary_elements = 1}};
  SharingForms const two = sharing_forms(Sharing::optimizer, blocks, 2, 1), four = sharing_forms(Sharing::parameters, blocks, 4, 3);
  EXPECT_EQ(two.reduced, 58);
  EXPECT_EQ(two.updated, 29);
  EXPECT_EQ(two.weights, 58);
  EXPECT_EQ(SharingForms::sent(two.gathered, 2), 29);
  EXPECT_EQ(four.reduced, 3 * 60);
  EXPECT_EQ(four.weights, 15);
  EXPECT_EQ(four.gathered, 60) << "one block: gathered once, and kept to the update";
}

/// Every change of one kind at one place. Returns how many there were.
int refuses_all(std::function<bool(Schedule&, std::vector<Action>&, std::size_t)> const& breaks) {
  int broken = 0;
  for (Shape const& shape : shapes()) {
    Lowered const good = shared(shape);
    for (std::size_t i = 0; i < good.schedule.lanes[0].body.size(); ++i) {
      Lowered bad = good;
      std::string const what = to_string(good.schedule.lanes[0].body[i]);
      if (!breaks(bad.schedule, bad.schedule.lanes[0].body, i)) continue;
      ++broken;
      EXPECT_THAT(problem_of(bad), ContainsRegex("lane 0, (body action [0-9]+|at its end)")) << what << " in " << brief(good.schedule);
    }
  }
  return broken;
}

bool concerns_weights(Schedule const& schedule, Action const& action) {
  bool const communicates = action.what == Do::post || action.what == Do::wait;
  return action.what == Do::release ||
         (communicates && postings_of(schedule.lanes[0], action.token).front().what == Collective::all_gather);
}

TEST(Sharing, NoGatherAndNoReleaseCanBeLeftOutOrDoubled) {
  EXPECT_GT(refuses_all([](Schedule& schedule, std::vector<Action>& body, std::size_t i) {
              if (!concerns_weights(schedule, body[i])) return false;
              body.erase(body.begin() + std::ptrdiff_t(i));
              return true;
            }),
            1000);
  EXPECT_GT(refuses_all([](Schedule& schedule, std::vector<Action>& body, std::size_t i) {
              if (!concerns_weights(schedule, body[i])) return false;
              body.insert(body.begin() + std::ptrdiff_t(i), body[i]);
              return true;
            }),
            1000);
}

TEST(Sharing, WeightsCannotBeGivenBackBeforeTheirUse) {
  EXPECT_GT(refuses_all([](Schedule&, std::vector<Action>& body, std::size_t i) {
              if (i == 0 || body[i].what != Do::release || body[i - 1].what == Do::release) return false;
              std::swap(body[i - 1], body[i]);
              return true;
            }),
            100);
  Lowered early = shared({Sharing::parameters, 2, 1});
  std::vector<Action>& body = early.schedule.lanes[0].body;
  for (std::size_t i = 1; i < body.size(); ++i)
    if (body[i].what == Do::release && body[i - 1].what == Do::backward) {
      std::swap(body[i - 1], body[i]);
      break;
    }
  EXPECT_THAT(problem_of(early), HasSubstr("the weights of unit 1 have not been gathered"));
}

TEST(Sharing, ASumMustBeTheOneThatItsSharingAsksFor) {
  for (Sharing sharing : {Sharing::optimizer, Sharing::gradients, Sharing::parameters}) {
    Lowered bad = shared({sharing, 2, 1});
    for (Posting& posting : bad.schedule.lanes[0].postings)
      if (posting.what == Collective::reduce_scatter) posting.what = Collective::all_reduce;
    EXPECT_THAT(problem_of(bad), HasSubstr("not the sum that its sharing asks for"));
  }
  Lowered bad = lowered(plan_sequential("ddp", 1), 2);
  bad.schedule.sharing = Sharing::optimizer;
  EXPECT_THAT(problem_of(bad), HasSubstr("not the sum that its sharing asks for"));
}

/// A unit in the middle of a bucket, or tied, is as large as itself, whatever it is reduced with.
TEST(Sharing, WhatIsSentOfAUnitIsTheUnit) {
  for (Tied tied : {Tied::no, Tied::yes}) {
    auto const blocks = chain(4, tied);
    Schedule coarse = plan_sequential("dp", 2);
    coarse.sharing = Sharing::root;
    Schedule const schedule = lower(bucket(refine(coarse, blocks, {0, 4}), blocks, {}), blocks, axes(Axis::data), Overlap::on);
    std::int64_t sent = 0;
    for (Posting const& posting : schedule.lanes[0].postings) {
      if (!posting.unit.valid()) continue;
      auto const makes = [&](BlockShape const& block) { return block.produces.front().unit == posting.unit; };
      EXPECT_EQ(elements_of(posting, schedule), std::ranges::find_if(blocks, makes)->elements.front());
      ++sent;
    }
    EXPECT_GE(sent, 3);
  }
}

}  // namespace
}  // namespace shardmark::test
