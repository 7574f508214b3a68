// The formulas of the papers against the simulator and the checker, at every shape of the grid; and against every possible schedule of
// tiny pipelines.

#include "schedule/closed_forms.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "planners.hpp"
#include "schedule/compare_pipelines.hpp"

namespace shardmark::test {
namespace {

constexpr StageSeconds costs_of_grid[] = {{1, 1, 1}, {2, 3, 1}, {1, 2, 2}, {3, 2, 1}, {1, 1, 2}, {5, 6, 4}, {2, 2, 1}, {4, 4, 4}};

std::vector<int> each(Proof const& proof, int LaneFacts::*fact) {
  std::vector<int> out;
  for (LaneFacts const& lane : proof.lanes) out.push_back(lane.*fact);
  return out;
}

/// What was compared: a grid on which no formula holds proves nothing.
struct Compared {
  int idle = 0, stashes = 0, held = 0;
};

void compare_idle(Pipeline kind, PipelineShape shape, Schedule const& schedule, Compared& compared) {
  for (StageSeconds const& seconds : costs_of_grid) {
    ClosedForms const forms = closed_forms(kind, shape, seconds);
    if (!forms.barrier_idle) continue;
    ++compared.idle;
    double const share = shape.chunks_per_stage;
    Costs const costs = compute_only({seconds.forward / share, seconds.input / share, seconds.weight / share});
    double const window = window_seconds(schedule, costs);
    double const barrier_idle = window - schedule.micros_per_window * seconds.all();
    EXPECT_NEAR(barrier_idle, *forms.barrier_idle, 1e-9) << seconds.forward << ' ' << seconds.input << ' ' << seconds.weight;
    EXPECT_NEAR(barrier_idle / window, *forms.bubble, 1e-12);
    if (!schedule.synchronous()) continue;
    Timeline const timeline = simulate(schedule, costs);
    EXPECT_NEAR(timeline.barrier_idle(), *forms.barrier_idle, 1e-9);
    EXPECT_NEAR(timeline.lane_idle(), *forms.lane_idle, 1e-9) << seconds.forward << ' ' << seconds.input << ' ' << seconds.weight;
  }
}

void compare_counts(Pipeline kind, PipelineShape shape, Schedule const& schedule, Compared& compared) {
  ClosedForms const forms = closed_forms(kind, shape, {});
  Proof const proof = check(schedule, {});
  EXPECT_EQ(each(proof, &LaneFacts::peak_versions), forms.versions);
  EXPECT_EQ(each(proof, &LaneFacts::staleness), forms.staleness);
  EXPECT_EQ(each(proof, &LaneFacts::peak_gradients), forms.gradients);
  if (forms.stashes) {
    ++compared.stashes;
    EXPECT_EQ(each(proof, &LaneFacts::peak_stashes), *forms.stashes);
  }
  if (forms.held) {
    ++compared.held;
    EXPECT_EQ(each(proof, &LaneFacts::peak_held), *forms.held);
  }
  auto const [communicating, blocks] = lowered(schedule, 1);
  std::int64_t sends = 0;
  for (LaneFacts const& lane : check(communicating, blocks, 1).lanes) sends += lane.sends;
  EXPECT_EQ(sends, forms.messages);
}

struct Planned {
  Pipeline kind;
  Decisions decisions = Decisions::per_lane;
};

std::vector<Planned> all_planned() {
  std::vector<Planned> out;
  for (Pipeline kind : pipelines) out.push_back({kind});
  for (Pipeline kind : {Pipeline::vertical, Pipeline::two_buffers}) out.push_back({kind, Decisions::joint});
  return out;
}

class ClosedFormsOf : public testing::TestWithParam<Planned> {};

TEST_P(ClosedFormsOf, AreWhatSimulatorAndCheckerFind) {
  Pipeline const kind = GetParam().kind;
  Compared compared;
  for (int stages = 1; stages <= 8; ++stages) {
    for (int micros = 1; micros <= 16; ++micros) {
      for (int chunks : kind == Pipeline::interleaved ? std::vector{1, 2, 3, 4} : std::vector{kind == Pipeline::zb_v ? 2 : 1}) {
        if (kind == Pipeline::two_buffers && micros < stages) continue;
        PipelineShape const shape{stages, micros, chunks, GetParam().decisions};
        SCOPED_TRACE(testing::Message() << name(kind) << " p " << stages << " m " << micros << " v " << chunks);
        Schedule const schedule = plan_pipeline(kind, shape);
        compare_idle(kind, shape, schedule, compared);
        compare_counts(kind, shape, schedule, compared);
        if (testing::Test::HasFailure()) return;
      }
    }
  }
  EXPECT_GE(compared.idle, 100);
  EXPECT_GE(compared.held, 60);
  EXPECT_GE(compared.stashes, kind == Pipeline::zb_v ? 0 : 60);
}

INSTANTIATE_TEST_SUITE_P(Pipelines, ClosedFormsOf, testing::ValuesIn(all_planned()), [](auto const& planned) {
  std::string text(name(planned.param.kind));
  std::ranges::replace(text, '-', '_');
  return text + (planned.param.decisions == Decisions::joint ? "_joint" : "");
});

TEST(ClosedForms, EndWhereTheyAreNotExact) {
  EXPECT_FALSE(closed_forms(Pipeline::interleaved, {4, 3, 2}, {}).barrier_idle);
  EXPECT_FALSE(closed_forms(Pipeline::zb_h1, {4, 3}, {}).barrier_idle);
  EXPECT_FALSE(closed_forms(Pipeline::zb_h1, {4, 8}, {1, 1, 2}).barrier_idle);
  EXPECT_FALSE(closed_forms(Pipeline::zb_h2, {4, 6}, {}).lane_idle);
  EXPECT_FALSE(closed_forms(Pipeline::zb_v, {4, 8, 2}, {2, 2, 1}).barrier_idle);
  // ... and the simulator does find something else there.
  double const outside = simulate(plan_interleaved({4, 3, 2}), compute_only({0.5, 0.5, 0.5})).barrier_idle();
  EXPECT_NE(outside, 3 * 3.0 / 2);
}

/// The least makespan of any order of every lane's actions that keeps at most `live` micro-batches between forward and backward on stage
/// i (live[i]). Tries all of them.
class BruteForce {
 public:
  BruteForce(PipelineShape shape, ChunkSeconds seconds, std::vector<int> live, bool split)
      : p_(shape.stages), m_(shape.micros), seconds_(seconds), live_(std::move(live)), split_(split) {
    for (auto* list : {&forward_, &input_, &weight_}) list->assign(std::size_t(p_ * m_), -1);
    clock_.assign(std::size_t(p_), 0);
    search(0, 0);
  }
  double best() const { return best_; }

 private:
  double& at(std::vector<double>& list, int stage, int micro) { return list[std::size_t(stage * m_ + micro)]; }

  int alive(int stage) {
    int count = 0;
    for (int m = 0; m < m_; ++m) count += at(forward_, stage, m) >= 0 && at(input_, stage, m) < 0 ? 1 : 0;
    return count;
  }

  void search(int done, double makespan) {
    int const all = p_ * m_ * (split_ ? 3 : 2);
    if (makespan >= best_) return;
    if (done == all) {
      best_ = makespan;
      return;
    }
    for (int s = 0; s < p_; ++s) {
      for (int m = 0; m < m_; ++m) {
        if (at(forward_, s, m) < 0) {
          // Micro-batches are alike: they enter in ascending order.
          bool const ready = s == 0 ? m == 0 || at(forward_, 0, m - 1) >= 0 : at(forward_, s - 1, m) >= 0;
          if (ready && alive(s) < live_[std::size_t(s)])
            run(forward_, s, m, s == 0 ? 0 : at(forward_, s - 1, m), seconds_.forward, done, makespan);
        } else if (at(input_, s, m) < 0) {
          if (s == p_ - 1 || at(input_, s + 1, m) >= 0) {
            double const ready = s == p_ - 1 ? 0 : at(input_, s + 1, m);
            run(input_, s, m, ready, seconds_.input + (split_ ? 0 : seconds_.weight), done, makespan);
          }
        } else if (split_ && at(weight_, s, m) < 0) {
          run(weight_, s, m, 0, seconds_.weight, done, makespan);
        }
      }
    }
  }

  void run(std::vector<double>& list, int stage, int micro, double ready, double duration, int done, double makespan) {
    double const before = clock_[std::size_t(stage)];
    double const end = std::max(before, ready) + duration;
    clock_[std::size_t(stage)] = at(list, stage, micro) = end;
    search(done + 1, std::max(makespan, end));
    clock_[std::size_t(stage)] = before;
    at(list, stage, micro) = -1;
  }

  int p_, m_;
  ChunkSeconds seconds_;
  std::vector<int> live_;
  bool split_;
  std::vector<double> forward_, input_, weight_, clock_;
  double best_ = 1e9;
};

// No order of the same actions that holds no more activations is faster, where performance.md claims that none is.
TEST(ClosedForms, NoScheduleOfTheSameClassIsFaster) {
  for (PipelineShape shape : {PipelineShape{2, 1}, {2, 2}, {2, 3}, {3, 2}}) {
    for (ChunkSeconds seconds : {ChunkSeconds{1, 1, 1}, {2, 3, 1}, {3, 2, 1}}) {
      SCOPED_TRACE(testing::Message() << shape.stages << ' ' << shape.micros << ' ' << seconds.forward);
      auto const live_of = [&](Schedule const& schedule) { return each(check(schedule, {}), &LaneFacts::peak_stashes); };
      for (Schedule const& schedule : {plan_gpipe(shape), plan_1f1b(shape)}) {
        EXPECT_EQ(simulate(schedule, compute_only(seconds)).makespan, BruteForce(shape, seconds, live_of(schedule), false).best())
            << schedule.name;
      }
    }
  }
  EXPECT_EQ(simulate(plan_model_parallel({2, 3}), compute_only({2, 3, 1})).makespan, BruteForce({2, 3}, {2, 3, 1}, {1, 1}, false).best())
      << "one micro-batch in the whole pipeline";
}

TEST(ClosedForms, ZeroBubbleIsOptimalWithItsMemory) {
  for (auto const& [shape, kind] :
       {std::pair{PipelineShape{2, 2}, ZeroBubble::h1}, {PipelineShape{2, 3}, ZeroBubble::h1}, {PipelineShape{2, 3}, ZeroBubble::h2}}) {
    Schedule const schedule = plan_zero_bubble(shape, kind);
    ChunkSeconds const unit{1, 1, 1};
    double const best = BruteForce(shape, unit, each(check(schedule, {}), &LaneFacts::peak_stashes), true).best();
    EXPECT_EQ(simulate(schedule, compute_only(unit)).makespan, best) << schedule.name << shape.micros;
  }
}

PipelineRow row_of(std::vector<PipelineRow> const& rows, Pipeline kind) { return *std::ranges::find(rows, kind, &PipelineRow::kind); }

TEST(ComparePipelines, PutsAllSideBySide) {
  auto const rows = compare_pipelines({4, 8, 1}, {1, 1, 1});
  ASSERT_EQ(rows.size(), std::size(pipelines));
  EXPECT_DOUBLE_EQ(row_of(rows, Pipeline::gpipe).bubble, 3.0 / 11);
  EXPECT_DOUBLE_EQ(row_of(rows, Pipeline::gpipe).live, 8);
  EXPECT_DOUBLE_EQ(row_of(rows, Pipeline::one_forward_one_backward).live, 4);
  EXPECT_DOUBLE_EQ(row_of(rows, Pipeline::interleaved).window, 8 * 3 + 3 * 3.0 / 2);
  EXPECT_EQ(row_of(rows, Pipeline::interleaved).messages, 2 * 7 * 8);
  EXPECT_DOUBLE_EQ(row_of(rows, Pipeline::zb_v).live, 4);
  PipelineRow const stash = row_of(rows, Pipeline::stash);
  EXPECT_NEAR(stash.bubble, 0, 1e-12);
  EXPECT_DOUBLE_EQ(stash.window, 8 * 3) << "a window is as many micro-batches as those of the others";
  EXPECT_EQ(stash.staleness, 3);
  EXPECT_EQ(stash.messages, 2 * 3 * 8);
  for (PipelineRow const& row : rows) EXPECT_TRUE(row.closed_form) << name(row.kind);
}

TEST(ComparePipelines, SaysWhatIsRefusedAndWhereThereIsNoFormula) {
  auto const rows = compare_pipelines({4, 3, 1}, {1, 1, 1});
  EXPECT_THAT(row_of(rows, Pipeline::two_buffers).refusal, testing::HasSubstr("at least 4"));
  EXPECT_FALSE(row_of(rows, Pipeline::zb_h1).closed_form);
  EXPECT_TRUE(row_of(rows, Pipeline::gpipe).closed_form);
  std::string const table = to_table(rows, 2e6);
  EXPECT_THAT(table, testing::HasSubstr("2bw with 3 micro-batches for 4 stages"));
  EXPECT_THAT(table,
              testing::HasSubstr("gpipe                    1         18    50.0%  the same      3        1         0       18       36\n"));
  for (std::size_t at = 0; at < table.find("2bw with");) {
    std::size_t const end = table.find('\n', at);
    EXPECT_LE(end - at, 100u);
    at = end + 1;
  }
}

}  // namespace
}  // namespace shardmark::test
