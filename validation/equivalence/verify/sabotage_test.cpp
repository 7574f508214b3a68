// Candidates with a fault FAIL, and the result names the tensor and the kind of fault.

#include <gtest/gtest.h>

#include <cstring>
#include <limits>

#include "cases.hpp"
#include "verify/capture.hpp"

namespace shardmark::testing {
namespace {

View gradient_of(Program& program, std::string const& param) {
  ModelSpec const& spec = program.store().spec();
  auto const at = std::find_if(spec.params.begin(), spec.params.end(), [&](ParamSpec const& p) { return p.name == param; });
  return part_of(gradient_total(program, at->unit), *at);
}

template <class F>
void change(View const& view, F&& f) {
  for (std::int64_t i = 0; i < view.elements(); ++i) {
    if (view.dtype == DType::f64)
      view.as<double>()[i] = f(view.as<double>()[i]);
    else
      view.as<float>()[i] = float(f(double(view.as<float>()[i])));
  }
}

/// Changes the finished gradient of one parameter, right before the decision of the first update.
class Spoil final : public Hook {
 public:
  Spoil(std::string param, std::function<void(View const&)> how) : param_(std::move(param)), how_(std::move(how)) {}
  void before(Program& program, Action const& action, std::int64_t) override {
    if (makes_first_version(action, Do::decide)) how_(gradient_of(program, param_));
  }

 private:
  std::string param_;
  std::function<void(View const&)> how_;
};

/// Puts the local gradient back after its reduction.
class SkipReduction final : public Hook {
 public:
  explicit SkipReduction(std::string param) : param_(std::move(param)) {}
  void before(Program& program, Action const& action, std::int64_t) override {
    View const g = gradient_of(program, param_);
    if (action.what == Do::post) {
      if (!reduced_) kept_.assign(g.data, g.data + g.bytes());
      reduced_ = reduced_ || posts(program, action.token);
    }
    if (action.what == Do::decide && reduced_) {
      std::memcpy(g.data, kept_.data(), kept_.size());
      reduced_ = false;
    }
  }

 private:
  bool posts(Program& program, Token token) const {
    Schedule const& schedule = program.parts().schedule;
    ModelSpec const& spec = program.store().spec();
    auto const param = std::find_if(spec.params.begin(), spec.params.end(), [&](ParamSpec const& p) { return p.name == param_; });
    for (Posting const& p : postings_of(schedule.lanes[0], token))
      for (Segment s : schedule.buckets[0][std::size_t(p.bucket.v)].segments)
        if (s.unit == param->unit) return true;
    return false;
  }
  std::string param_;
  std::vector<std::byte> kept_;
  bool reduced_ = false;
};

/// Undoes the update of one parameter.
class SkipUpdate final : public Hook {
 public:
  explicit SkipUpdate(std::string param) : param_(std::move(param)) {}
  void before(Program& program, Action const& action, std::int64_t) override {
    if (!here(program, action)) return;
    View const w = weight(program, Version{action.version.v - 1});
    kept_.assign(w.data, w.data + w.bytes());
  }
  void after(Program& program, Action const& action, std::int64_t) override {
    if (here(program, action)) std::memcpy(weight(program, action.version).data, kept_.data(), kept_.size());
  }

 private:
  ParamSpec const& param(Program& program) const {
    auto const& params = program.store().spec().params;
    return *std::find_if(params.begin(), params.end(), [&](ParamSpec const& p) { return p.name == param_; });
  }
  bool here(Program& program, Action const& action) const { return action.what == Do::update && action.unit == param(program).unit; }
  View weight(Program& program, Version version) const {
    return part_of(program.store().flat(Part::master, param(program).unit, version), param(program));
  }
  std::string param_;
  std::vector<std::byte> kept_;
};

Verification prove_with(Case const& c, std::function<std::unique_ptr<Hook>()> const& fault) {
  VerifyRequest r = request(c);
  r.candidate_hooks = [&fault] {
    std::vector<std::unique_ptr<Hook>> hooks;
    hooks.push_back(fault());
    return hooks;
  };
  return prove(r, c.replicas);
}

Verification prove_spoilt(Case const& c, std::string const& param, std::function<void(View const&)> const& how) {
  return prove_with(c, [&] { return std::make_unique<Spoil>(param, how); });
}

constexpr char const* victim = "h.1.mlp.fc.weight";
Case const ddp{.net = Net::gpt, .replicas = 2, .steps = 3};
/// What a faultless gate leaves alone: the tensors before the victim in order.
void expect_only(Verification const& result, std::string const& param) {
  EXPECT_EQ(result.verdict, Verdict::failed) << table(result);
  EXPECT_NE(result.first_divergence.find("gradient of " + param), std::string::npos) << table(result);
  for (Check const& c : result.checks) {
    bool const victims = c.tensor == "gradient of " + param || c.tensor == "updated " + param || c.tensor == "gradient norm";
    if (c.part != "fp64 gate" || victims) continue;
    EXPECT_NE(c.verdict, Verdict::failed) << c.tensor;
  }
}

TEST(Sabotage, AFactorOfTwoIsNamed) {
  Verification const result = prove_spoilt(ddp, victim, [](View const& g) { change(g, [](double x) { return 2 * x; }); });
  expect_only(result, victim);
  EXPECT_NE(result.fingerprint.find("expected times 2"), std::string::npos) << result.fingerprint;
}

TEST(Sabotage, AFactorOfOneInTenThousandIsFound) {
  Verification const result = prove_spoilt(ddp, victim, [](View const& g) { change(g, [](double x) { return 1.0001 * x; }); });
  expect_only(result, victim);
  EXPECT_NE(result.fingerprint.find("expected times 1.0001"), std::string::npos) << result.fingerprint;
  // Every mutant keeps a ratio of 10 at the gate (validation rule 3).
  EXPECT_GT(find(result, "fp64 gate", std::string("gradient of ") + victim).ratio, 1e3);
}

TEST(Sabotage, OneFlippedBitIsFound) {
  auto const flip = [](View const& g) { g.data[5 * width(g.dtype) + width(g.dtype) - 1] ^= std::byte{0x20}; };
  Verification const result = prove_spoilt(ddp, victim, flip);
  expect_only(result, victim);
  EXPECT_EQ(result.fingerprint, "one element differs (5)");
  EXPECT_EQ(find(result, "fp64 gate", std::string("gradient of ") + victim).index, 5);
}

TEST(Sabotage, TheLastBitOfAFloatIsLeftToTheBitwisePart) {
  auto const flip = [](View const& g) {
    if (g.dtype == DType::f32) g.data[0] ^= std::byte{1};
  };
  Case serial = ddp;
  serial.replicas = 1;
  Verification const result = prove_spoilt(serial, victim, flip);
  EXPECT_EQ(result.verdict, Verdict::failed);
  EXPECT_EQ(find(result, "fp32", std::string("gradient of ") + victim).verdict, Verdict::verified);
  // A step of 0.1 g rounds it away in the weights; the norm, in fp64, keeps it.
  EXPECT_EQ(find(result, "fp32 bitwise", "gradient norm of each update").verdict, Verdict::failed) << table(result);
}

TEST(Sabotage, ASkippedReductionIsNamed) {
  Verification const result = prove_with(ddp, [] { return std::make_unique<SkipReduction>(victim); });
  expect_only(result, victim);
  EXPECT_NE(result.fingerprint.find("partial result of rank"), std::string::npos) << result.fingerprint;
  EXPECT_EQ(find(result, "fp32 cost", "replicas with other weights").verdict, Verdict::failed);
}

TEST(Sabotage, AWeightThatIsNotUpdatedIsNamed) {
  for (Rule rule : {Rule::sgd, Rule::adamw}) {
    Case c = ddp;
    c.optimizer.rule = rule;
    c.optimizer.rate.base = 0.01;
    Verification const result = prove_with(c, [] { return std::make_unique<SkipUpdate>(victim); });
    EXPECT_EQ(result.verdict, Verdict::failed);
    EXPECT_NE(result.first_divergence.find(std::string("updated ") + victim), std::string::npos) << table(result);
    EXPECT_NE(result.fingerprint.find("not updated"), std::string::npos) << result.fingerprint;
  }
}

TEST(Sabotage, AZeroGradientIsNamed) {
  Verification const result = prove_spoilt(ddp, "wpe.weight", [](View const& g) { change(g, [](double) { return 0.0; }); });
  expect_only(result, "wpe.weight");
  EXPECT_EQ(result.fingerprint, "zero");
}

TEST(Sabotage, NotANumberFails) {
  auto const spoil = [](View const& g) { change(slice(g, 0, 7, 8), [](double) { return std::numeric_limits<double>::quiet_NaN(); }); };
  Verification const result = prove_spoilt(Case{.net = Net::mlp, .replicas = 2, .steps = 3}, "layers.1.weight", spoil);
  EXPECT_EQ(result.verdict, Verdict::failed);
  Check const& check = find(result, "fp64 gate", "gradient of layers.1.weight");
  EXPECT_EQ(check.verdict, Verdict::failed);
  EXPECT_EQ(check.note, "not finite");
  EXPECT_EQ(check.index, 7);
  EXPECT_EQ(to_json(result, {}).find("nan"), std::string::npos);
}

}  // namespace
}  // namespace shardmark::testing
