// `plan`: what a run would do and need, without starting one.

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "app/build_job.hpp"
#include "app/coarse_schedule.hpp"
#include "app/describe.hpp"
#include "app/main.hpp"
#include "app/plan.hpp"
#include "app/rank_shares.hpp"
#include "app/recompute_table.hpp"
#include "app/traffic_table.hpp"
#include "comm/fabric.hpp"
#include "record/files.hpp"
#include "schedule/render.hpp"

namespace shardmark {
namespace {

constexpr double assumed_alpha_seconds = 2e-6;  // of a message inside a node

double flops_of(DryRun const& rank) {
  double out = 0;
  for (auto const& work : rank.work) out += work.flops;
  return out;
}

void print_buckets(Plan const& plan) {
  std::size_t const bytes = width(accumulator(plan.job.model->dtype));
  for (auto const& lane : plan.job.schedule.buckets)
    for (Bucket const& b : lane) {
      std::string units;
      for (Segment s : b.segments) units += fmt::format(" {}", plan.job.model->spec[s.unit].name);
      fmt::print("  bucket {:<3} {:>12} elements {:>10.2f} MiB {}\n", b.id.v, b.elements, to_mib(b.elements * std::int64_t(bytes)), units);
    }
}

/// Rank 0 moves more than the others.
void print_volumes(Plan const& plan) {
  fmt::print("                      above: rank 0; every rank, MB (formula):\n");
  for (std::size_t r = 0; r < plan.ranks.size(); ++r) {
    Volume const counted = counted_volume(plan.ranks[r]), formula = formula_volume(plan.job, int(r));
    fmt::print("  rank {:<4}           sent {:.3f} ({:.3f}), received {:.3f} ({:.3f})\n", r, double(counted.sent) * 1e-6,
               double(formula.sent) * 1e-6, double(counted.received) * 1e-6, double(formula.received) * 1e-6);
  }
}

/// Some names are wider than their numbers.
std::string_view heading(Book book) {
  switch (book) {
    case Book::versions:
      return "versions";
    case Book::communication:
      return "exchange";
    default:
      return name(book);
  }
}

void print_memory(Plan const& plan) {
  constexpr std::size_t gap = 1, numbers = 8;
  std::vector<std::size_t> used;
  for (std::size_t b = 0; b < books; ++b)
    if (std::any_of(plan.ranks.begin(), plan.ranks.end(), [&](DryRun const& rank) { return rank.peak[b] > 0; })) used.push_back(b);
  auto const width_of = [&](std::size_t b) { return std::max(heading(Book(b)).size(), numbers) + gap; };
  fmt::print("\nmemory, MiB at most\n rank");
  for (std::size_t b : used) fmt::print("{:>{}}", heading(Book(b)), width_of(b));
  fmt::print("{:>10}\n", "all");
  for (std::size_t r = 0; r < plan.ranks.size(); ++r) {
    fmt::print("{:>5}", r);
    for (std::size_t b : used) fmt::print("{:>{}.2f}", to_mib(plan.ranks[r].peak[b]), width_of(b));
    fmt::print("{:>10.2f}\n", to_mib(plan.ranks[r].peak_total));
  }
}

/// The same for all lanes: one number, else one for each.
std::string staleness_of(Proof const& proof) {
  std::vector<int> of_lane;
  for (LaneFacts const& lane : proof.lanes) of_lane.push_back(lane.staleness);
  bool const alike = std::all_of(of_lane.begin(), of_lane.end(), [&](int lag) { return lag == of_lane.front(); });
  return alike ? fmt::format("{}", of_lane.front()) : fmt::format("{} by stage", fmt::join(of_lane, " "));
}

void print_plan(Plan const& plan, Options const& options) {
  fmt::print("{}\n\n", describe_run(options, fmt::format("{} plan, {}", options.program, count_of(std::int64_t(plan.ranks.size()), "rank")),
                                    plan.job.model->spec, plan.job.replicas));
  fmt::print("{}\n", render(plan.drawn));
  std::string models;
  for (CommunicationModel model : plan.proof.models) models += fmt::format("{}{}", models.empty() ? "" : ", ", name(model));
  fmt::print("checked: ends under {}; {} windows unrolled; staleness {}\n\n", models, plan.proof.windows_checked, staleness_of(plan.proof));
  if (plan.job.mesh.pipeline > 1) fmt::print("{}\n", stage_rows(plan));
  DryRun const& first = plan.ranks.front();
  fmt::print("per rank and update   {:.3f} GFLOP\n", flops_of(first) * 1e-9);
  if (!first.collectives.empty() || first.messages > 0) fmt::print("\n{}", traffic_table(first, plan.job, plan.prediction, 0));
  if (plan.job.scatters()) print_volumes(plan);
  print_buckets(plan);
  print_memory(plan);
  if (auto const& state = plan.prediction.state)
    fmt::print("formula: parameters {:.2f}, gradients {:.2f} a sum, optimizer {:.2f}\n", to_mib(state->weights), to_mib(state->gradients),
               to_mib(state->optimizer));
  fmt::print("\npredicted             {:.1f} ms a step, of which {:.2f} ms exposed communication\n", plan.step.step_seconds * 1e3,
             plan.step.exposed_seconds * 1e3);
  fmt::print(
      "                      by this machine's rates of products and memory;\n                      links assumed: {:.0f} us, half the "
      "memory's rate\n",
      assumed_alpha_seconds * 1e6);
}

std::string plan_json(Plan const& plan, Options const& options) {
  using Json = nlohmann::ordered_json;
  Json out{{"schema", "shardmark.plan/1.0"},
           {"strategy", options.program},
           {"ranks", plan.ranks.size()},
           {"input", Json::parse(describe_json(options))},
           {"parameters", plan.job.model->spec.elements()}};
  Json ranks = Json::array();
  for (std::size_t r = 0; r < plan.ranks.size(); ++r) {
    Json memory;
    for (std::size_t b = 0; b < books; ++b) memory[std::string(name(Book(b)))] = plan.ranks[r].peak[b];
    memory["ledger_peak"] = plan.ranks[r].peak_total;
    Json traffic = Json::array();
    for (auto const& t : plan.ranks[r].collectives)
      traffic.push_back({{"op", name(t.what)},
                         {"axes", axes_name(t.axes)},
                         {"purpose", t.purpose},
                         {"calls", t.calls},
                         {"bytes", t.bytes},
                         {"sent_bytes", t.sent_bytes}});
    ranks.push_back({{"rank", r}, {"memory_bytes", memory}, {"flops", flops_of(plan.ranks[r])}, {"collectives", traffic}});
  }
  out["per_rank"] = ranks;
  out["parameters_bytes_embedding"] = embedding_parameters(plan.job.model->spec) * std::int64_t(width(options.dtype));
  out["predicted"] = {{"step_seconds", plan.step.step_seconds},
                      {"exposed_seconds", plan.step.exposed_seconds},
                      {"bubble_fraction", plan.step.bubble_fraction},
                      {"reductions", plan.prediction.reductions},
                      {"wire_elements", plan.prediction.wire_elements}};
  if (auto const& state = plan.prediction.state)
    out["predicted"]["model_state_bytes"] = {
        {"parameters", state->weights}, {"gradients", state->gradients}, {"optimizer", state->optimizer}};
  return out.dump();
}

/// The table behind the plan; its picture in place of the schedule's.
Exit print_rules(Options options, Strategy const& strategy, Plan const& plan) {
  RuleTable const table = plan_rules(options, strategy);
  if (options.json != "-") fmt::print("\n{}", to_text(table));
  if (!options.svg.empty())
    record::replace_file(options.svg, to_svg(table, describe_run(options, options.program + ", planned", plan.job.model->spec, 1)));
  options.svg.clear();
  write_plan_files(plan, options);
  return Exit::good;
}

}  // namespace

Plan make_plan(Options const& options, Strategy const& strategy, int ranks) {
  Plan plan;
  plan.job = build_job(options, strategy, ranks, options.dtype, JobPurpose::training,
                       build_dataset(options, strategy.mesh(options, ranks).data, JobPurpose::training));
  plan.drawn = coarse_schedule(strategy, options, ranks);
  plan.drawn_proof = check(plan.drawn, {});
  auto const blocks = plan.job.model->shapes();
  plan.proof = check(plan.job.schedule, blocks);
  plan.prediction = strategy.predict(options, blocks, ranks);
  for (int r = 0; r < ranks; ++r) plan.ranks.push_back(dry_run(plan.job, r));
  auto ops = build_backend(options, options.deterministic ? Determinism::deterministic : Determinism::fastest);
  plan.probe = run_probe(plan.job, *ops, *make_self());
  // No peers to ask: a node's memory stands for its links.
  plan.probe.all_reduce_alpha_seconds = assumed_alpha_seconds;
  plan.probe.all_reduce_bytes_per_second = plan.probe.bytes_per_second / 2;
  plan.probe.message = {assumed_alpha_seconds, plan.probe.all_reduce_bytes_per_second};
  plan.seconds_of_lane.resize(plan.job.schedule.lanes.size());
  for (int r = 0; r < ranks; ++r)
    plan.seconds_of_lane[std::size_t(plan.job.mesh.stage_of(r))] =
        compute_seconds(plan.ranks[std::size_t(r)], plan.probe) + exchange_seconds(plan.ranks[std::size_t(r)], plan.probe);
  plan.step = predict_step(plan.job, plan.seconds_of_lane, plan.probe);
  plan.step.exposed_seconds += exchange_seconds(plan.ranks.front(), plan.probe);
  return plan;
}

Exit run_plan(Options const& options, Strategy const& strategy, int ranks) {
  if (!options.json.empty() && options.json != "-") record::require_appendable(options.json, "--json");
  require_plan_files(options);
  if (options.compare) {
    fmt::print("{}", pipelines_table(options, strategy, ranks));
    return Exit::good;
  }
  Plan const plan = make_plan(options, strategy, ranks);
  if (options.json == "-")
    fmt::print("{}\n", plan_json(plan, options));
  else
    print_plan(plan, options);
  if (!options.json.empty() && options.json != "-") record::append_line(options.json, plan_json(plan, options));
  if (strategy.compares_rules()) return print_rules(options, strategy, plan);
  write_plan_files(plan, options);
  return Exit::good;
}

}  // namespace shardmark
