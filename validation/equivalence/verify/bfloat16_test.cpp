// Proofs of bf16 runs: no alarm over seeds, faults within the reach of bf16's bounds are found, the rest by the fp64 gate.

#include <gtest/gtest.h>

#include "cases.hpp"
#include "verify/capture.hpp"

namespace shardmark::testing {
namespace {

constexpr OptimizerSettings adamw{.rule = Rule::adamw, .weight_decay = 0.1, .clip_norm = 0.5, .rate = {.base = 1e-3}};

void expect_verified(Verification const& result) {
  EXPECT_EQ(result.verdict, Verdict::verified) << table(result);
  EXPECT_GT(result.count(CheckKind::factor), 5);
}

struct CleanBfloat16 : ::testing::TestWithParam<std::tuple<Net, int>> {};

TEST_P(CleanBfloat16, SgdAndAdamAreVerified) {
  auto const [net, replicas] = GetParam();
  Case c{.net = net, .replicas = replicas, .micros = 2, .dtype = DType::bf16};
  Verification const result = prove(c);
  expect_verified(result);
  EXPECT_GT(result.count(CheckKind::bitwise), 10);
  c.optimizer = adamw;
  expect_verified(prove(c));
}

INSTANTIATE_TEST_SUITE_P(Jobs, CleanBfloat16,
                         ::testing::Combine(::testing::Values(Net::mlp, Net::gpt, Net::gpt_tied), ::testing::Values(1, 2, 3)));

/// By the library's products too, where the processor has them.
TEST(Bfloat16, NoAlarmOverSeeds) {
  for (std::uint64_t seed = 1; seed <= 6; ++seed)
    for (Determinism const determinism : {Determinism::deterministic, Determinism::fastest}) {
      Verification const result = prove(
          Case{.net = Net::gpt, .replicas = 2, .batch = 6, .seed = seed, .dtype = DType::bf16, .steps = 0, .determinism = determinism});
      expect_verified(result);
      for (Check const& check : result.checks) EXPECT_LT(std::isnan(check.ratio) ? 0 : check.ratio, 1) << check.tensor << " seed " << seed;
    }
}

/// Scales every gradient of the first update, in the run in bf16 alone.
class Scale final : public Hook {
 public:
  explicit Scale(float factor) : factor_(factor) {}
  void before(Program& program, Action const& action, std::int64_t) override {
    if (program.parts().model.dtype != DType::bf16 || !makes_first_version(action, Do::decide)) return;
    for (UnitId unit : program.store().held()) {
      View const g = gradient_total(program, unit);
      for (std::int64_t i = 0; i < g.elements(); ++i) g.as<float>()[i] *= factor_;
    }
  }

 private:
  float factor_;
};

Verification prove_scaled(float factor) {
  VerifyRequest r = request(Case{.net = Net::gpt, .replicas = 2, .dtype = DType::bf16, .steps = 0});
  r.candidate_hooks = [factor] {
    std::vector<std::unique_ptr<Hook>> hooks;
    hooks.push_back(std::make_unique<Scale>(factor));
    return hooks;
  };
  return prove(r, 2);
}

int failed(Verification const& result, CheckKind kind) {
  return int(std::count_if(result.checks.begin(), result.checks.end(),
                           [&](Check const& c) { return c.kind == kind && c.verdict == Verdict::failed; }));
}

TEST(Bfloat16, HalfAGradientIsBeyondTheBounds) {
  Verification const result = prove_scaled(0.5F);
  EXPECT_EQ(result.verdict, Verdict::failed);
  EXPECT_GT(failed(result, CheckKind::bounded), 10) << table(result);
  EXPECT_EQ(failed(result, CheckKind::factor), result.count(CheckKind::factor)) << table(result);
}

/// What no bound of bf16 can see, a sum over all elements of a gradient does.
TEST(Bfloat16, TheFactorTestFindsAHundredth) {
  Verification const result = prove_scaled(1.01F);
  EXPECT_EQ(result.verdict, Verdict::failed) << table(result, Rows::all);
  EXPECT_GT(failed(result, CheckKind::factor), 0);
  EXPECT_NE(to_json(result, {}).find("\"kind\":\"factor\""), std::string::npos);
}

TEST(Bfloat16, GradientsThatAreZeroByIdentityHaveNoFactor) {
  Verification const result = prove(Case{.net = Net::gpt, .dtype = DType::bf16, .steps = 0});
  for (Check const& c : result.checks)
    if (c.kind == CheckKind::factor) {
      EXPECT_EQ(c.tensor.find("attn.k.bias"), std::string::npos);
      EXPECT_EQ(c.part, "bf16");
      EXPECT_GT(c.bound, 0) << c.tensor;
    }
}

}  // namespace
}  // namespace shardmark::testing
