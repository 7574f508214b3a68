// The envelope itself: deviations are proportional to the unit roundoff, and what can't fail is UNVERIFIED.

#include "verify/envelope.hpp"

#include <gtest/gtest.h>

#include <cmath>

#include "cases.hpp"
#include "comm/fabric.hpp"
#include "verify/finding.hpp"

namespace shardmark::testing {
namespace {

Envelope envelope_at(double roundoff) {
  Job const job = make_job(Case{.net = Net::gpt, .batch = 4}, DType::f64);
  Job const twin = serial_twin(job);
  Catalogue const catalogue(job, Scope::full);
  std::function<std::unique_ptr<Backend>()> const backend = [] { return make_reference_backend(); };
  std::function<void()> const beat;
  std::array<DType, 1> const types{DType::f64};
  auto const self = make_self();
  Assembly alone(*self);
  return make_envelope({.twin = twin, .catalogue = catalogue, .backend = backend, .beat = beat, .types = types, .roundoff = roundoff},
                       alone);
}

TEST(Envelope, DeviationIsProportionalToTheUnitRoundoff) {
  // One set of perturbed runs serves fp64 and fp32: from 2^-30 to fp32's 2^-24, and 2^-36 towards fp64, e / u stays.
  Envelope const middle = envelope_at(envelope_roundoff), single = envelope_at(0x1p-24), small = envelope_at(0x1p-36);
  for (std::size_t t = 0; t < middle.size(); ++t) {
    EXPECT_GT(middle[t].deviation, 0);
    EXPECT_NEAR(single[t].deviation / middle[t].deviation, 1, 1e-3) << t;
    EXPECT_NEAR(small[t].deviation / middle[t].deviation, 1, 1e-2) << t;
  }
}

/// One tensor of four elements, compared by one rank.
Check judged(std::vector<double> const& candidate, std::vector<double> const& reference, double bound) {
  Catalogue const catalogue(make_job(Case{}, DType::f64), Scope::in_situ);
  Comparison comparison{
      .part = "part", .catalogue = catalogue, .findings = {}, .largest = {}, .largest_bound = {}, .factor_bound = {}, .counts = {}};
  std::size_t const tensors = catalogue.tensors().size();
  comparison.findings.resize(tensors);
  comparison.largest.assign(tensors, 0);
  comparison.factor_bound.assign(tensors, 0);
  comparison.largest_bound.assign(tensors, bound);
  std::size_t const loss = std::size_t(catalogue.find(TensorKind::loss));
  for (std::size_t i = 0; i < candidate.size(); ++i) {
    comparison.findings[loss].compare(candidate[i], reference[i], bound, std::int64_t(i));
    comparison.largest[loss] = std::max(comparison.largest[loss], std::abs(reference[i]));
  }
  auto const self = make_self();
  Assembly alone(*self);
  return conclude(comparison, alone)[loss];
}

TEST(Judgement, WhatCannotFailIsUnverified) {
  EXPECT_EQ(judged({0}, {0}, 0).verdict, Verdict::unverified);    // a reference of zeros
  EXPECT_EQ(judged({1}, {1}, 0.2).verdict, Verdict::unverified);  // bounds as large as the values
  EXPECT_EQ(judged({1}, {1}, 0.05).verdict, Verdict::verified);
}

TEST(Judgement, FailsOnlyBeyondTheBound) {
  EXPECT_EQ(judged({1.04}, {1}, 0.05).verdict, Verdict::verified);
  EXPECT_EQ(judged({1.06}, {1}, 0.05).verdict, Verdict::failed);
  EXPECT_EQ(judged({std::nan("")}, {1}, 0.05).verdict, Verdict::failed);
  EXPECT_EQ(judged({1e-300}, {0}, 0).verdict, Verdict::failed);
}

TEST(Judgement, WhatNobodyComparedFails) {
  Check const check = judged({}, {}, 0.05);
  EXPECT_EQ(check.verdict, Verdict::failed);
  EXPECT_EQ(check.note, "not all of it was made");
}

Finding scaled(double factor) {
  Finding f;
  for (int i = 1; i <= 8; ++i) f.compare(factor * i, i, 1e-9, i);
  return f;
}

TEST(Fingerprint, NamesFactorsByTheirCause) {
  Counts const counts{.replicas = 3, .micros = 5};
  auto const of = [&](double c) { return fingerprint(scaled(c), 1e9, counts, 0); };
  EXPECT_EQ(of(3), "expected times 3 (R, the replicas)");
  EXPECT_EQ(of(1.0 / 3), "expected times 0.333333 (1/R: divided by the replicas)");
  EXPECT_EQ(of(5), "expected times 5 (M, the micro-batches)");
  EXPECT_EQ(of(0.2), "expected times 0.2 (1/M: divided by the micro-batches)");
  EXPECT_EQ(of(std::sqrt(2.0)), "expected times 1.41421 (sqrt 2)");
  EXPECT_EQ(of(-1), "expected times -1 (the sign)");
  EXPECT_EQ(of(1.5), "expected times 1.5");
  EXPECT_EQ(of(0), "zero");
}

TEST(Fingerprint, DoesNotInventAFactor) {
  Finding f;
  for (int i = 1; i <= 8; ++i) f.compare(i % 2 == 0 ? i : 2 * i, i, 1e-9, i);
  EXPECT_NE(fingerprint(f, 1e9, {}, 0).find("no simple factor"), std::string::npos);
}

}  // namespace
}  // namespace shardmark::testing
