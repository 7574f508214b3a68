// PyTorch as a second oracle: the executor's own backends share one idea of what a model is, and PyTorch doesn't.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <utility>

#include "data/sha256.hpp"
#include "validation/golden/comparison.hpp"

namespace shardmark::golden {
namespace {

std::size_t buffers_of(Case const& c) { return make_model(c)->spec.buffers.size(); }

/// Gradient and weight of every parameter and every buffer at each stored update; loss, norm and count of all updates.
int expected_tensors(Case const& c) {
  return int(std::size(stored_updates) * (2 * std::size_t(c.parameters) + buffers_of(c))) + 3 * int(updates);
}

class GoldenCase : public ::testing::TestWithParam<Case> {};

TEST_P(GoldenCase, FilesBelongToTheseModelsAndInputs) {
  Case const& c = GetParam();
  Golden const golden = read_golden(c.name);
  ASSERT_EQ(golden.inputs_sha256, sha256_hex(inputs_json(c))) << "the inputs changed: run make_golden.py again";
  auto const model = make_model(c);
  EXPECT_EQ(std::int64_t(model->spec.params.size()), c.parameters);
  EXPECT_EQ(model->spec.elements(), c.elements);
  EXPECT_EQ(std::int64_t(golden.shapes.size()), c.parameters);
  for (ParamSpec const& param : model->spec.params) EXPECT_EQ(golden.shapes.at(param.name), param.full) << param.name;
  EXPECT_EQ(golden.tensors.size(), std::size(rules) * std::size(stored_updates) * (2 * std::size_t(c.parameters) + buffers_of(c)));
}

TEST_P(GoldenCase, NothingHidesBehindZeros) {
  Case const& c = GetParam();
  Golden const golden = read_golden(c.name);
  auto const model = make_model(c);
  for (Rule rule : rules) {
    for (double norm : golden.scalars.at(rule).norm) EXPECT_GT(norm, settings(rule).clip_norm) << "an update isn't clipped";
    for (ParamSpec const& param : model->spec.params) {
      Values const& first = golden.tensors.at(key(rule, "weight", 1, param.name));
      Values const& last = golden.tensors.at(key(rule, "weight", updates, param.name));
      EXPECT_TRUE(param.null_gradient || first != last) << param.name << " doesn't move";
      EXPECT_TRUE(std::any_of(first.begin(), first.end(), [](double x) { return x != 0; })) << param.name << " is zero";
    }
  }
}

TEST_P(GoldenCase, TrainsAsPyTorchDoes) {
  Case const& c = GetParam();
  Golden const golden = read_golden(c.name);
  for (Way const& way : ways())
    for (Rule rule : rules) {
      SCOPED_TRACE(way.name);
      std::vector<Trained> const ranks = train(c, rule, way);
      ASSERT_EQ(ranks.size(), std::size_t(way.replicas));
      Comparison worst;
      for (Trained const& rank : ranks) {
        Comparison const result = compare(c, rule, golden, rank);
        EXPECT_EQ(result.tensors, expected_tensors(c));
        for (std::string const& difference : result.differences) ADD_FAILURE() << difference;
        if (result.worst >= worst.worst) worst = result;
      }
      RecordProperty(fmt::format("{}, {}", way.name, name(rule)), fmt::format("{:.2g} of {}", worst.worst, worst.worst_where));
    }
}

/// Every stored tensor counts: one element of one of them, off by a few tolerances, is found and named.
TEST_P(GoldenCase, ChangedValueIsFound) {
  Case const& c = GetParam();
  Golden golden = read_golden(c.name);
  auto const model = make_model(c);
  for (Rule rule : rules) {
    Trained const run = train(c, rule, ways().front()).front();
    ASSERT_TRUE(compare(c, rule, golden, run).differences.empty());
    auto const expect_found = [&](std::string const& where) {
      double& value = golden.tensors.at(where).back();
      double const right = std::exchange(value, value + 1e-11);
      auto const differences = compare(c, rule, golden, run).differences;
      ASSERT_EQ(differences.size(), 1u) << where;
      EXPECT_TRUE(differences[0].starts_with(where + "[")) << differences[0];
      value = right;
    };
    for (std::int64_t update : stored_updates) {
      for (ParamSpec const& param : model->spec.params)
        for (char const* quantity : {"gradient", "weight"}) expect_found(key(rule, quantity, update, param.name));
      for (BufferSpec const& buffer : model->spec.buffers) expect_found(key(rule, "buffer", update, buffer.name));
    }
    for (Values Scalars::*series : {&Scalars::loss, &Scalars::norm, &Scalars::counted}) {
      double& value = (golden.scalars.at(rule).*series).back();
      double const right = std::exchange(value, value + 1e-10);
      EXPECT_EQ(compare(c, rule, golden, run).differences.size(), 1u);
      value = right;
    }
  }
}

TEST_P(GoldenCase, MissingTensorIsFound) {
  Case const& c = GetParam();
  Golden golden = read_golden(c.name);
  Trained const run = train(c, Rule::sgd, ways().front()).front();
  golden.tensors.erase(key(Rule::sgd, "weight", updates, golden.shapes.begin()->first));
  Comparison const result = compare(c, Rule::sgd, golden, run);
  EXPECT_EQ(result.tensors, expected_tensors(c) - 1);
  EXPECT_EQ(result.differences.size(), 1u);
}

INSTANTIATE_TEST_SUITE_P(PyTorch, GoldenCase, ::testing::ValuesIn(cases().begin(), cases().end()), [](auto const& instance) {
  std::string out = instance.param.name;
  std::replace(out.begin(), out.end(), '-', '_');
  return out;
});

}  // namespace
}  // namespace shardmark::golden
