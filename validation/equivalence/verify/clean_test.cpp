// Candidates without a fault are VERIFIED, far inside their bounds.

#include <gtest/gtest.h>

#include "cases.hpp"

namespace shardmark::testing {
namespace {

constexpr OptimizerSettings adamw{.rule = Rule::adamw, .weight_decay = 0.1, .clip_norm = 0.5, .rate = {.base = 1e-3}};

void expect_verified(Verification const& result) {
  EXPECT_EQ(result.verdict, Verdict::verified) << table(result);
  EXPECT_EQ(result.first_divergence, "");
  EXPECT_LT(result.worst_ratio(), 1) << table(result);
}

struct Clean : ::testing::TestWithParam<std::tuple<Net, int>> {};

TEST_P(Clean, SgdIsVerified) {
  auto const [net, replicas] = GetParam();
  Verification const result = prove(Case{.net = net, .replicas = replicas, .micros = 2});
  expect_verified(result);
  EXPECT_LT(result.worst_ratio(), drift_ratio) << table(result);
  EXPECT_GT(result.count(CheckKind::bounded), 20);
  EXPECT_GT(result.count(CheckKind::bitwise), 10);
  EXPECT_GT(result.count(CheckKind::count), 6);
}

TEST_P(Clean, AdamWithClippingIsVerified) {
  auto const [net, replicas] = GetParam();
  expect_verified(prove(Case{.net = net, .replicas = replicas, .optimizer = adamw}));
}

INSTANTIATE_TEST_SUITE_P(Jobs, Clean, ::testing::Combine(::testing::Values(Net::mlp, Net::gpt, Net::gpt_tied), ::testing::Values(1, 2, 3)));

struct CleanConvnet : ::testing::TestWithParam<std::tuple<BatchNormPolicy, int, int>> {};

TEST_P(CleanConvnet, IsVerifiedInBothTypesWithItsBuffers) {
  auto const [policy, replicas, micros] = GetParam();
  for (DType const dtype : {DType::f32, DType::f64}) {
    Verification const result =
        prove(Case{.net = Net::convnet, .replicas = replicas, .micros = micros, .batch = 9, .dtype = dtype, .batch_norm = policy});
    expect_verified(result);
    EXPECT_LT(result.worst_ratio(), drift_ratio) << table(result);
    std::string const bitwise = std::string(name(dtype)) + " bitwise";
    for (char const* buffer : {"running_mean", "running_var", "num_batches_tracked"})
      EXPECT_EQ(find(result, bitwise, std::string("final layers.1.bn.") + buffer).kind, CheckKind::bitwise);
  }
}

INSTANTIATE_TEST_SUITE_P(Jobs, CleanConvnet,
                         ::testing::Combine(::testing::Values(BatchNormPolicy::per_micro, BatchNormPolicy::deferred, BatchNormPolicy::sync),
                                            ::testing::Values(1, 2, 3, 4, 5), ::testing::Values(1, 2)));

/// Four replicas for three samples: one of them never has any.
TEST(CleanConvnetRanks, WithoutSamplesCountToo) {
  for (auto const policy : {BatchNormPolicy::per_micro, BatchNormPolicy::deferred, BatchNormPolicy::sync})
    expect_verified(prove(Case{.net = Net::convnet, .replicas = 4, .micros = 2, .batch = 3, .batch_norm = policy}));
}

TEST(CleanGpt, RatiosStayFarFromOneOverSeeds) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    Verification const result = prove(Case{.net = Net::gpt, .replicas = 2, .batch = 6, .seed = seed, .steps = 0});
    EXPECT_EQ(result.verdict, Verdict::verified) << table(result);
    EXPECT_LT(result.worst_ratio(), drift_ratio) << table(result);
  }
}

TEST(CleanGpt, TheGateHasPowerOfSixDigits) {
  Verification const result = prove(Case{.net = Net::gpt, .replicas = 2, .steps = 0});
  for (Check const& c : result.checks) {
    if (c.part != "fp64 gate" || c.kind != CheckKind::bounded) continue;
    EXPECT_GT(c.power, 1e6) << c.tensor;
  }
}

TEST(CleanGpt, KeyBiasIsANullGradient) {
  Verification const result = prove(Case{.net = Net::gpt, .steps = 0});
  EXPECT_EQ(find(result, "fp64 gate", "gradient of h.1.attn.k.bias").kind, CheckKind::null_gradient);
  EXPECT_EQ(find(result, "fp64 gate", "gradient of h.1.attn.q.bias").kind, CheckKind::bounded);
}

TEST(CleanGpt, RanksWithoutSamplesCountToo) { expect_verified(prove(Case{.net = Net::gpt, .replicas = 3, .micros = 2, .batch = 2})); }

TEST(CleanGpt, InSituChecksWhatIsTimed) {
  VerifyRequest r = request(Case{.net = Net::gpt, .replicas = 2, .steps = 0, .determinism = Determinism::fastest});
  r.scope = Scope::in_situ;
  r.make_job = [](DType dtype) {
    Job job = make_job(Case{.net = Net::gpt, .replicas = 2}, dtype);
    job.reduction = Reduction::vendor;
    return job;
  };
  r.reference_backend = [] { return make_cpu_backend(Determinism::deterministic); };
  Verification const result = prove(r, 2);
  expect_verified(result);
  for (Check const& c : result.checks) EXPECT_NE(c.part, "fp64 gate");
  EXPECT_EQ(result.count(CheckKind::bitwise), 0);
}

}  // namespace
}  // namespace shardmark::testing
