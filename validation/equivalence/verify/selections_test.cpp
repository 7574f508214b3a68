// Selections of ReLU that rounding decides: found, tried both ways, and allowed for in bounds.

#include "verify/selections.hpp"

#include <gtest/gtest.h>

#include <array>
#include <set>
#include <span>

#include "backend/decorators/perturbed.hpp"
#include "base/random.hpp"
#include "cases.hpp"
#include "comm/fabric.hpp"
#include "verify/envelope.hpp"

namespace shardmark::testing {
namespace {

/// Coarse enough that a small model has undecided inputs.
constexpr double coarse = 0x1p-14;
constexpr std::array<DType, 1> fp64{DType::f64};
constexpr std::array<DType, 2> both{DType::f32, DType::f64};

struct Proven {
  explicit Proven(Net net)
      : job(make_job(Case{.net = net, .batch = 40}, DType::f64)), twin(serial_twin(job)), catalogue(job, Scope::full) {}
  Envelope envelope(std::span<DType const> types) const {
    auto const self = make_self();
    Assembly alone(*self);
    return make_envelope(
        {.twin = twin, .catalogue = catalogue, .backend = backend, .beat = beat, .types = types, .selection_roundoff = coarse}, alone);
  }
  Job job, twin;
  Catalogue catalogue;
  std::function<std::unique_ptr<Backend>()> backend = [] { return make_reference_backend(); };
  std::function<void()> beat;
};

/// The largest error over bound of a run, with what selections add and without it. The bound's unit is `coarse` too: a selection moves
/// an input by as much as rounding with that unit does, and so all that is computed from it.
class Ratios final : public Sink {
 public:
  explicit Ratios(Envelope const& envelope) : envelope_(envelope) {}
  void take(Piece const& piece) override {
    TensorEnvelope const& tensor = envelope_[std::size_t(piece.tensor)];
    each_value(piece.values, [&](std::int64_t i, double x) {
      std::int64_t const at = piece.range.begin + i;
      double const error = std::abs(x - tensor.reference[std::size_t(at)]);
      double const bound = 4 * coarse * (double(tensor.spread[std::size_t(at)]) + tensor.deviation);
      with = std::max(with, error / (bound + tensor.selected[std::size_t(at)]));
      without = std::max(without, error / bound);
    });
  }
  double with = 0, without = 0;

 private:
  Envelope const& envelope_;
};

void run_step(Proven const& proven, Backend& ops, Sink& sink) {
  auto const self = make_self();
  Capture capture(proven.catalogue, *proven.twin.model, {0, proven.catalogue.micros()}, sink);
  Rig rig(proven.twin, {.ops = ops, .world = *self, .observer = &capture, .hooks = {&capture}});
  rig.program().advance(1);
  rig.program().drain();
}

class Nothing final : public Sink {
 public:
  void take(Piece const&) override {}
};

/// In how many ways the runs select these inputs.
std::size_t ways(std::vector<std::int64_t> const& inputs) {
  std::set<std::vector<bool>> seen;
  for (int run = 0; run < selection_runs; ++run) {
    std::vector<bool> way;
    for (std::int64_t k : inputs) way.push_back(choice_of_run(run)(k));
    seen.insert(way);
  }
  return seen.size();
}

TEST(SelectionsOfRuns, NoTwoOfSevenInARowGoAlikeInAll) {
  for (std::int64_t a = 0; a < 30; ++a)
    for (std::int64_t b = a + 1; b < a + 7; ++b) EXPECT_EQ(ways({a, b}), 4u) << a << " and " << b;
  for (std::int64_t without = 0; without < 4; ++without) {
    std::vector<std::int64_t> three{0, 1, 2, 3};
    three.erase(three.begin() + without);
    EXPECT_EQ(ways(three), 8u) << without;
  }
}

struct SelectionsOf : ::testing::TestWithParam<Net> {};

TEST_P(SelectionsOf, Fp64LeavesNoneOpenAndBoundsStay) {
  Proven const proven(GetParam());
  Envelope const without = proven.envelope(fp64), with = proven.envelope(both);
  double widened = 0;
  for (std::size_t t = 0; t < with.size(); ++t) {
    EXPECT_TRUE(without[t].selected.empty());
    EXPECT_EQ(with[t].bound(0, DType::f64), without[t].bound(0, DType::f64));
    EXPECT_GE(with[t].bound(0, DType::f32), without[t].bound(0, DType::f32));
    widened = std::max(widened, with[t].mean_selected);
  }
  EXPECT_GT(widened, 0);
}

TEST_P(SelectionsOf, ARunThatSelectsOtherwiseIsWithinItsBoundsOnlyWithThem) {
  Proven const proven(GetParam());
  Envelope const envelope = proven.envelope(both);
  auto const reference = make_reference_backend();
  Selections selections;
  Nothing nothing;
  KeepSelections keep(*reference, selections);
  run_step(proven, keep, nothing);
  PerturbedBackend perturbed(*reference, {.store = envelope_roundoff, .accumulate = envelope_roundoff, .seed = 1});
  MeasureSelections measure(perturbed, envelope_roundoff, selections);
  run_step(proven, measure, nothing);
  std::size_t open = 0;
  auto const undecided = selections.undecided(coarse);
  for (auto const& near : undecided) open += near.size();
  ASSERT_GT(open, 0u) << "the test needs an input near 0";
  double needed = 0;
  for (std::uint64_t seed = 100; seed < 108; ++seed) {
    Randoms const random(seed, Purpose::perturbation, 0);
    ChosenSelections otherwise(*reference, undecided, [&](std::int64_t k) { return random.below(2, std::uint64_t(k)) == 1; });
    Ratios ratios(envelope);
    run_step(proven, otherwise, ratios);
    EXPECT_LE(ratios.with, 1) << seed;
    needed = std::max(needed, ratios.without);
  }
  EXPECT_GT(needed, 1) << "without them the bounds would have held: the test shows nothing";
}

INSTANTIATE_TEST_SUITE_P(Nets, SelectionsOf, ::testing::Values(Net::mlp, Net::convnet));

TEST(SelectionsOfGelu, ThereAreNone) {
  Proven const proven(Net::gpt);
  for (TensorEnvelope const& t : proven.envelope(both)) EXPECT_TRUE(t.selected.empty());
}

}  // namespace
}  // namespace shardmark::testing
