// What a result looks like: the table's width, the JSON's keys, nothing that isn't a number.

#include <gtest/gtest.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <sstream>

#include "verify/verification.hpp"

namespace shardmark::testing {
namespace {

Verification result() {
  double const nan = std::numeric_limits<double>::quiet_NaN();
  Verification out;
  out.verdict = Verdict::failed;
  out.strategy = "ddp";
  out.ranks = 4;
  out.candidate_backend = "cpu";
  out.reference_backend = "reference";
  for (int i = 0; i < 30; ++i) {
    Check check{.part = "fp64 gate", .tensor = "gradient of a.module.with.a.rather.long.name." + std::to_string(i) + ".weight"};
    check.error = 1e-17;
    check.bound = 1e-15;
    check.ratio = 0.01 * i;
    check.power = 1e13;
    out.checks.push_back(check);
  }
  out.checks[3].verdict = Verdict::failed;
  out.checks[3].error = nan;
  out.checks[3].ratio = std::numeric_limits<double>::infinity();
  out.checks[3].note = "not finite";
  out.checks[4].kind = CheckKind::bitwise;
  out.checks[4].ratio = out.checks[4].power = nan;
  out.first_divergence = "a: gradient of a";
  return out;
}

int lines_with(std::string const& text, std::string const& word) {
  std::istringstream in(text);
  int count = 0;
  for (std::string line; std::getline(in, line);) count += line.find(word) != std::string::npos ? 1 : 0;
  return count;
}

TEST(Report, TableFitsAHundredColumnsAndShowsEveryFailure) {
  for (Rows rows : {Rows::worst, Rows::all}) {
    std::string const text = table(result(), rows);
    std::istringstream in(text);
    for (std::string line; std::getline(in, line);) EXPECT_LE(line.size(), 100u) << line;
    EXPECT_EQ(lines_with(text, "name.3.weight"), 1);
    EXPECT_EQ(lines_with(text, "fp64 gate"), rows == Rows::all ? 30 : 11);
    EXPECT_EQ(text.substr(text.size() - 7), "FAILED\n");
  }
}

TEST(Report, JsonHasTheDocumentedKeys) {
  auto const json = nlohmann::json::parse(to_json(result(), {{"seed", "1"}}));
  EXPECT_EQ(json["verdict"], "FAILED");
  EXPECT_EQ(json["strategy"], "ddp");
  EXPECT_EQ(json["first_divergence"], "a: gradient of a");
  EXPECT_EQ(json["environment"]["seed"], "1");
  ASSERT_EQ(json["checks"].size(), 30u);
  for (char const* key : {"tensor", "kind", "error", "bound", "ratio", "power", "verdict"})
    EXPECT_TRUE(json["checks"][0].contains(key)) << key;
  EXPECT_EQ(json["checks"][4]["kind"], "bitwise");
}

TEST(Report, WhatIsNotANumberIsNullWithAReason) {
  auto const json = nlohmann::json::parse(to_json(result(), {}));
  EXPECT_TRUE(json["checks"][3]["error"].is_null());
  EXPECT_TRUE(json["checks"][3]["ratio"].is_null());
  EXPECT_EQ(json["checks"][3]["note"], "not finite");
  EXPECT_TRUE(json["checks"][4]["power"].is_null());
}

TEST(Report, NoFailureHasNoFirstDivergence) {
  Verification good;
  auto const json = nlohmann::json::parse(to_json(good, {}));
  EXPECT_TRUE(json["first_divergence"].is_null());
  EXPECT_EQ(json["verdict"], "VERIFIED");
}

}  // namespace
}  // namespace shardmark::testing
