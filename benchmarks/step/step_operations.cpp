// Where the time of one training step goes: each kind of operation with its share of the step and of what this core can do at most,
// measured in the same run. Takes serial's options: step_operations --layers 4 --hidden 512 --heads 8 --seq 256 --vocab 8192 --batch 4
//
// Seconds are of the wall clock, medians over the steps.

#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <numeric>

#include "app/build_job.hpp"
#include "backend/decorators/traced.hpp"
#include "benchmarks/support/limits.hpp"
#include "comm/fabric.hpp"
#include "metrics/clock.hpp"
#include "metrics/statistics.hpp"
#include "strategies/serial/serial.hpp"

namespace shardmark {
namespace {

constexpr std::size_t most_spans = 1 << 20;
constexpr std::size_t large = std::size_t{256} << 20;  // no cache holds it

/// One kind of operation.
struct Kind {
  std::vector<double> seconds;             // of each step
  double calls = 0, flops = 0, bytes = 0;  // of one step
};

struct Step {
  std::map<std::string, Kind> kinds;
  std::vector<double> seconds;
};

/// Runs the steps and sorts what was traced by kind.
Step trace_steps(Options const& options) {
  auto const strategy = make_serial();
  Job const job = build_job(options, *strategy, 1, options.dtype, JobPurpose::training, build_dataset(options, 1, JobPurpose::training));
  auto const ops = build_backend(options, options.deterministic ? Determinism::deterministic : Determinism::fastest);
  std::vector<OpSpan> room(most_spans);
  TracedBackend traced(*ops, room);
  auto const world = make_self();
  Rig rig(job, {.ops = traced, .world = *world});
  rig.program().advance(options.warmup);
  Step out;
  for (std::int64_t s = 0; s < options.steps; ++s) {
    traced.restart();
    std::int64_t const begin = now_ns();
    rig.program().advance(1);
    out.seconds.push_back(seconds_between(begin, now_ns()));
    if (traced.dropped() > 0) throw RankFailure("a step has too many operations to trace");
    std::map<std::string, Kind> now;
    for (OpSpan const& span : traced.spans()) {
      Kind& kind = now[std::string(span.name)];
      kind.seconds.resize(1);
      kind.seconds[0] += span.end_seconds - span.begin_seconds;
      kind.calls += 1;
      kind.flops += span.flops;
      kind.bytes += span.bytes;
    }
    for (auto& [name, kind] : now) {
      Kind& all = out.kinds[name];
      kind.seconds.insert(kind.seconds.begin(), all.seconds.begin(), all.seconds.end());
      all = kind;
    }
  }
  rig.program().drain();
  return out;
}

nlohmann::json report(Step const& step, Limits const& limits) {
  double const total = median(step.seconds);
  nlohmann::json out{{"step_seconds", total},
                     {"steps", step.seconds.size()},
                     {"peak_flops_per_second", limits.flops_per_second},
                     {"memory_bytes_per_second", limits.bytes_per_second}};
  double inside = 0;
  for (auto const& [name, kind] : step.kinds) {
    double const seconds = median(kind.seconds);
    inside += seconds;
    out["operations"].push_back({{"operation", name},
                                 {"calls", kind.calls},
                                 {"seconds", seconds},
                                 {"share_of_step", seconds / total},
                                 {"flops_per_second", kind.flops / seconds},
                                 {"bytes_per_second", kind.bytes / seconds},
                                 {"share_of_limit", limits.seconds(kind.flops, kind.bytes) / seconds}});
  }
  auto& operations = out["operations"];
  std::sort(operations.begin(), operations.end(), [](auto const& a, auto const& b) { return a["seconds"] > b["seconds"]; });
  out["outside_operations_share"] = 1 - inside / total;
  out["matmul_share"] = step.kinds.count("matmul") > 0 ? median(step.kinds.at("matmul").seconds) / total : 0.0;
  return out;
}

void print(nlohmann::json const& r) {
  fmt::print("step {:.1f} ms (median of {}); limits: {:.0f} GFLOP/s in registers, {:.1f} GB/s of memory\n\n",
             1e3 * r["step_seconds"].get<double>(), r["steps"].get<int>(), 1e-9 * r["peak_flops_per_second"].get<double>(),
             1e-9 * r["memory_bytes_per_second"].get<double>());
  fmt::print(" {:<18} {:>5} {:>8} {:>7} {:>8} {:>7} {:>9}\n", "operation", "calls", "ms", "% step", "GFLOP/s", "GB/s", "% limit");
  for (auto const& o : r["operations"])
    fmt::print(" {:<18} {:>5} {:>8.2f} {:>7.2f} {:>8.1f} {:>7.1f} {:>9.0f}\n", o["operation"].get<std::string>(), o["calls"].get<int>(),
               1e3 * o["seconds"].get<double>(), 100 * o["share_of_step"].get<double>(), 1e-9 * o["flops_per_second"].get<double>(),
               1e-9 * o["bytes_per_second"].get<double>(), 100 * o["share_of_limit"].get<double>());
  fmt::print(" {:<18} {:>5} {:>8} {:>7.2f}\n", "between them", "", "", 100 * r["outside_operations_share"].get<double>());
  fmt::print("\nnot matmul: {:.1f} % of the step\n", 100 * (1 - r["matmul_share"].get<double>()));
}

int run(int argc, char** argv) {
  Usage usage;
  usage.program = "step_operations";
  usage.commands = Usage::Commands::no;
  usage.left_out = {"rounds", "eval", "inject", "verify", "out", "csv", "trace", "dry-run", "ranks-as-threads", "comm"};
  ParseResult const parsed = parse_options(usage, argc, argv);
  if (!parsed.options) {
    fmt::print("{}", parsed.text);
    return int(Exit::good);
  }
  Options const& options = *parsed.options;
  require_fit(options, 1);
  Step const step = trace_steps(options);
  nlohmann::json const out = report(
      step, {peak_flops_per_second(build_backend(options, Determinism::fastest)->instruction_set()), memory_bytes_per_second(large)});
  if (options.json == "-")
    fmt::print("{}\n", out.dump(1));
  else
    print(out);
  if (!options.json.empty() && options.json != "-" && !(std::ofstream(options.json) << out.dump(1) << "\n"))
    throw RankFailure(fmt::format("{} could not be written", options.json));
  return int(Exit::good);
}

}  // namespace
}  // namespace shardmark

int main(int argc, char** argv) {
  try {
    return shardmark::run(argc, argv);
  } catch (shardmark::Error const& error) {
    fmt::print(stderr, "shardmark: {}\n", error.what());
    return int(error.code());
  }
}
