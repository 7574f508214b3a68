#include <gtest/gtest.h>

#include <cmath>
#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "record/provenance.hpp"
#include "sample_record.hpp"

namespace shardmark::record {
namespace {

using Json = nlohmann::ordered_json;
using test::sample_record;

/// The published example.
Json example() {
  char const* source = std::getenv("SHARDMARK_SOURCE");
  std::ifstream file(std::string(source == nullptr ? "." : source) + "/validation/golden/record-example.json");
  return Json::parse(file);
}

/// Names, order and types, with the values neutralised.
Json shape(Json const& json) {
  if (json.is_object()) {
    Json out = Json::object();
    for (auto const& [key, value] : json.items()) out[key] = shape(value);
    return out;
  }
  if (json.is_array()) return json.empty() ? Json::array() : Json::array({shape(json[0])});
  return json.is_number() ? "number" : json.type_name();
}

/// Fails to parse when a number isn't finite: strict JSON has no word for it, and ours writes null.
Json strict(std::string const& line) {
  EXPECT_EQ(line.find('\n'), std::string::npos);
  EXPECT_EQ(line.find("nan"), std::string::npos);
  EXPECT_EQ(line.find("inf"), std::string::npos);
  return Json::parse(line);
}

TEST(RecordJson, HasTheShapeOfThePublishedExample) {
  Json written = strict(to_json_line(sample_record()));
  written.erase("null_reasons");
  EXPECT_EQ(shape(written).dump(1), shape(example()).dump(1));
}

TEST(RecordJson, PutsEveryValueWhereTheExampleHasIt) {
  Json written = strict(to_json_line(sample_record()));
  written.erase("null_reasons");
  EXPECT_EQ(Json::diff(example(), written).dump(1), "[]");
}

TEST(RecordJson, TellsHowMatrixProductsWereMade) {
  Record record = sample_record();
  Result result = *record.result;
  result.matmul_paths = {{"8x16x4 NT bf16", "packed", {{"library", 2.5e11}, {"packed", 3e11}}}};
  record.result = result;
  Json const paths = strict(to_json_line(record))["result"]["matmul_paths"];
  EXPECT_EQ(paths.dump(),
            R"([{"shape":"8x16x4 NT bf16","path":"packed","flops_per_second":{"library":250000000000.0,"packed":300000000000.0}}])");
}

TEST(RecordJson, NullsThatHaveReasonsNameThem) {
  Json const reasons = strict(to_json_line(sample_record()))["null_reasons"];
  EXPECT_EQ(reasons.dump(), R"({"result.memory_bytes.device_used_peak":"no device","ranks[0].accelerator":"no device"})");
}

TEST(RecordJson, case_116_NotFiniteIsNullWithAReason) {
  Record record = sample_record();
  Result result = *record.result;
  result.loss.last = std::nan("");
  result.grad_norm_last = -INFINITY;
  result.tokens_per_second = INFINITY;
  result.step_seconds.samples = {1, std::nan(""), 3};
  record.result = result;
  record.method.clock_resolution_ns = -std::nan("");
  Json const json = strict(to_json_line(record));
  EXPECT_TRUE(json["result"]["loss"]["last"].is_null());
  EXPECT_TRUE(json["result"]["grad_norm_last"].is_null());
  EXPECT_TRUE(json["result"]["tokens_per_second"]["value"].is_null());
  EXPECT_EQ(json["result"]["tokens_per_second"]["reason"], "the value is not finite");
  EXPECT_EQ(json["result"]["step_seconds"]["samples"].dump(), "[1.0,null,3.0]");
  EXPECT_TRUE(json["method"]["clock_resolution_ns"].is_null());
  for (char const* path : {"result.loss.last", "result.grad_norm_last", "method.clock_resolution_ns"}) {
    EXPECT_EQ(json["null_reasons"][path], "the value is not finite") << path;
  }
}

TEST(RecordJson, case_116_OneSampleHasNoInterval) {
  Record record = sample_record();
  Result result = *record.result;
  result.step_seconds = step_seconds({1.5});
  record.result = result;
  Json const json = strict(to_json_line(record));
  EXPECT_TRUE(json["result"]["step_seconds"]["ci95"].is_null());
  EXPECT_EQ(json["result"]["step_seconds"]["median"], 1.5);
  EXPECT_EQ(json["null_reasons"]["result.step_seconds.ci95"], "a 95 % rank interval needs 6 samples, there are 1");
  EXPECT_EQ(step_seconds({}).n, 0);
}

TEST(RecordJson, ARunThatHasNoResultYet) {
  Record record;
  record.result = Measured<Result>::missing("the run has not ended");
  Json const json = strict(to_json_line(record));
  EXPECT_EQ(json["run"]["state"], "running");
  EXPECT_TRUE(json["run"]["ended"].is_null());
  EXPECT_TRUE(json["result"].is_null());
  EXPECT_EQ(json["null_reasons"]["result"], "the run has not ended");
  EXPECT_EQ(json["official"], false);
}

TEST(RecordJson, BytesThatAreNotUtf8AreEscaped) {
  Record record = sample_record();
  record.run.argv = {"--data", "text:caf\xc3\xa9-\xff"};
  record.input.data.path = "a\xff";
  record.environment.variables = {{"LD_PRELOAD", "\xfe"}};
  Json const json = strict(to_json_line(record));
  EXPECT_EQ(json["run"]["argv"][1], "text:caf\xc3\xa9-\\xff");
  EXPECT_EQ(json["input"]["data"]["path"], "a\\xff");
  EXPECT_EQ(json["environment"]["LD_PRELOAD"], "\\xfe");
}

TEST(RecordJson, case_120_CountsAbove32BitsAreExact) {
  Record record = sample_record();
  record.input.parameters = 2457600000;
  record.input.seed = ~std::uint64_t{0};
  Json const json = strict(to_json_line(record));
  EXPECT_EQ(json["input"]["parameters"], 2457600000);
  EXPECT_EQ(json["input"]["seed"], ~std::uint64_t{0});
}

std::vector<std::string> cells(std::string const& line) {
  std::vector<std::string> out(1);
  for (char c : line) {
    if (c == ',') {
      out.emplace_back();
    } else {
      out.back() += c;
    }
  }
  return out;
}

std::string cell(Record const& record, std::string const& column) {
  auto const names = cells(csv_header()), values = cells(to_csv_line(record));
  EXPECT_EQ(names.size(), values.size());
  auto const at = std::find(names.begin(), names.end(), column);
  EXPECT_NE(at, names.end()) << column;
  return values[std::size_t(at - names.begin())];
}

TEST(RecordCsv, case_116_MissingValuesAreEmptyCells) {
  Record record = sample_record();
  EXPECT_EQ(cell(record, "tokens_per_second"), "3619");
  EXPECT_EQ(cell(record, "step_seconds_ci95_low"), "1.1264");
  EXPECT_EQ(cell(record, "verdict"), "VERIFIED");
  Result result = *record.result;
  result.tokens_per_second = std::nan("");
  result.step_seconds = step_seconds({1});
  record.result = result;
  EXPECT_EQ(cell(record, "tokens_per_second"), "");
  EXPECT_EQ(cell(record, "step_seconds_ci95_low"), "");
  record.result = Measured<Result>::missing("none");
  EXPECT_EQ(cell(record, "loss_last"), "");
}

TEST(RecordCsv, QuotesWhatWouldBreakALine) {
  Record record = sample_record();
  record.input.strategy = "a,\"b\"";
  EXPECT_NE(to_csv_line(record).find(",\"a,\"\"b\"\"\","), std::string::npos);
}

TEST(Reasons, HaveStableCodes) {
  EXPECT_EQ(code(Reason::launch_set_incomplete), "launch_set_incomplete");
  EXPECT_EQ(code(Reason::in_situ_does_not_fit), "in_situ_does_not_fit");
  EXPECT_EQ(code(Reason::emulated_nodes), "emulated_nodes");
  EXPECT_EQ(code(Reason::small_shared_memory), "small_shared_memory");
  EXPECT_EQ(code(Reason::different_binaries), "different_binaries");
}

std::vector<Reason> reasons_of(Record const& record) {
  std::vector<Reason> out;
  for (Unofficial const& unofficial : reasons_against(record)) out.push_back(unofficial.reason);
  return out;
}

TEST(Reasons, EachFollowsFromItsFact) {
  Record good = sample_record();
  good.run.launch_index = 5;
  EXPECT_EQ(reasons_of(good), std::vector<Reason>{});
  good.unofficial.clear();
  EXPECT_TRUE(good.official());
  auto expect_reason = [&](Reason reason, auto&& change) {
    Record record = good;
    change(record);
    EXPECT_EQ(reasons_of(record), std::vector<Reason>{reason}) << code(reason);
  };
  auto changed_result = [](Record& r, auto&& change) {
    Result result = *r.result;
    change(result);
    r.result = result;
  };
  expect_reason(Reason::launch_set_incomplete, [](Record& r) { r.run.launch_index = 4; });
  expect_reason(Reason::launch_set_incomplete, [](Record& r) { r.run.launch_index = r.run.launches_planned = std::nullopt; });
  expect_reason(Reason::not_completed, [](Record& r) { r.run.state = State::timeout; });
  expect_reason(Reason::unverified, [](Record& r) { r.verdict = Verdict::unverified; });
  expect_reason(Reason::verification_failed, [](Record& r) { r.verdict = Verdict::failed; });
  expect_reason(Reason::differs_from_timed, [](Record& r) { r.verification.differs_from_timed = {"overlap"}; });
  expect_reason(Reason::no_warmup, [](Record& r) { r.method.warmup_steps = 0; });
  expect_reason(Reason::traced, [](Record& r) { r.method.trace = true; });
  expect_reason(Reason::injected_fault, [](Record& r) { r.input.injected_fault = "nan:rank=1"; });
  expect_reason(Reason::emulated_link, [](Record& r) { r.input.emulated_link = "5us,3GB/s"; });
  expect_reason(Reason::emulated_nodes, [](Record& r) { r.system.distinct_boot_ids = 1; });
  expect_reason(Reason::ranks_share_cores, [](Record& r) { r.system.ranks_per_core = 2; });
  expect_reason(Reason::cgroup_quota, [](Record& r) { r.system.cgroup_cpu_quota = 1.5; });
  expect_reason(Reason::stolen_time, [](Record& r) { r.ranks[0].steal_pct = 7.0; });
  expect_reason(Reason::inhomogeneous_nodes, [](Record& r) { r.system.homogeneous = false; });
  expect_reason(Reason::unknown_source, [](Record& r) { r.build.source = "unknown"; });
  expect_reason(Reason::changed_source, [](Record& r) { r.build.dirty = true; });
  expect_reason(Reason::unoptimised_build, [](Record& r) { r.build.type = "debug"; });
  expect_reason(Reason::different_binaries, [](Record& r) { r.build.same_binary_on_all_nodes = false; });
  expect_reason(Reason::allocations_after_warmup,
                [&](Record& r) { changed_result(r, [](Result& x) { x.memory_bytes.allocations_after_warmup = 3; }); });
  expect_reason(Reason::nonfinite_steps, [&](Record& r) { changed_result(r, [](Result& x) { x.loss.nonfinite_steps = 1; }); });
}

TEST(Official, NeedsProofEndAndNoObjection) {
  Record record = sample_record();
  EXPECT_FALSE(record.official());
  record.unofficial.clear();
  EXPECT_TRUE(record.official());
  record.verdict = Verdict::unverified;
  EXPECT_FALSE(record.official());
}

}  // namespace
}  // namespace shardmark::record
