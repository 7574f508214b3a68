// `bench`: proves, trains, reports.

#include <fmt/format.h>

#include <algorithm>
#include <exception>
#include <tuple>

#include "app/bench.hpp"
#include "app/describe.hpp"
#include "app/pictures.hpp"
#include "app/recompute_table.hpp"
#include "app/run_end.hpp"
#include "app/traffic_table.hpp"
#include "record/files.hpp"
#include "record/run_folder.hpp"

namespace shardmark {
namespace {

void print_row(std::string_view what, std::string const& value, std::string const& beside = "") {
  fmt::print("  {:<22}{:>16}   {}\n", what, value, beside);
}

void print_run(RankContext const& context, BenchRun const& run, record::Record const& record) {
  Options const& o = context.options;
  record::Result const& r = *record.result;
  auto const& step = r.step_seconds;
  fmt::print("{}\n", describe_run(o, o.program + " bench", run.job.model->spec, run.job.replicas));
  fmt::print("{}   comm {}   backend {} ({})   seed {}   {} warm-up + {} timed steps\n\n", count_of(context.world.size(), "rank"),
             context.world.name(), name(o.backend), record.software.isa_used, o.seed, run.launch.warmup, run.measured.step_seconds.size());
  if (run.launch.before > 0) fmt::print("  resumed from update {} of {}\n", run.launch.before, o.resume);
  print_row(fmt::format("{}s/s", term_name(o)), fmt::format("{:.1f}", r.tokens_per_second.value_or(0)),
            fmt::format("{:.1f} a rank", r.tps.value_or(0)));
  std::string interval = step.ci95 ? fmt::format("95 % of the median in [{:.2f}, {:.2f}]", step.ci95->low * 1e3, step.ci95->high * 1e3)
                                   : "no interval: " + step.ci95.reason();
  print_row("step, median ms", fmt::format("{:.2f}", step.median.value_or(0) * 1e3), interval);
  print_row("  predicted ms", fmt::format("{:.2f}", step.predicted.value_or(0) * 1e3),
            fmt::format("measured / predicted {:.3f} (basis: probe)", step.ratio.value_or(0)));
  print_row("matmul share", fmt::format("{:.1f} %", r.gemm_fraction.value.value_or(0) * 100),
            fmt::format("of {:.1f} GFLOP/s a rank, measured in this job", run.probe.matmul_flops_per_second * 1e-9));
  for (record::Comm const& c : r.comm) {
    print_row(c.op + " a step", fmt::format("{}", c.calls_per_step), fmt::format("predicted {}", c.calls_predicted));
    print_row(c.op == "gather" ? "  taken by rank 0, MB" : "  sent a rank, MB", fmt::format("{:.3f}", double(c.bus_bytes_per_rank) * 1e-6),
              fmt::format("formula {:.3f}", double(c.bus_bytes_predicted) * 1e-6));
    print_row("  exposed ms", fmt::format("{:.2f}", c.exposed_seconds.value_or(0) * 1e3),
              fmt::format("predicted {:.2f}", run.prediction.exposed_seconds * 1e3));
  }
  if (run.stages) fmt::print("{}", stage_table(*run.stages, run.formula.pipeline ? run.formula.pipeline->bubble : std::nullopt));
  if (!run.plan.collectives.empty() || run.plan.messages > 0) fmt::print("{}", traffic_table(run.plan, run.job, run.formula, 0));
  if (run.shares) fmt::print("{}", share_table(*run.shares, run.job));
  auto const& m = r.memory_bytes;
  print_row("ledger peak, MiB", fmt::format("{:.2f}", to_mib(m.ledger_peak)),
            fmt::format("planned {:.2f}, ratio {:.4f}, rank {}", to_mib(m.predicted.value_or(0)), m.ratio.value_or(0), m.rank));
  if (auto const& state = run.formula.state)
    for (auto const& [what, kept, formula] : {std::tuple{"parameters", m.parameters, state->weights},
                                              {"gradients", m.gradients, state->gradients},
                                              {"optimizer", m.optimizer, state->optimizer}})
      print_row(fmt::format("  {}, MiB", what), fmt::format("{:.2f}", to_mib(kept)), fmt::format("formula {:.2f}", to_mib(formula)));
  print_row("allocations in steps", fmt::format("{}", m.allocations_after_warmup.value_or(-1)), "by our code, after warm-up");
  if (run.checkpoints.saved > 0)
    print_row(
        "checkpoints", fmt::format("{}", run.checkpoints.saved),
        fmt::format("{:.2f} s beside the steps, {:.2f} MiB each, in {}", run.checkpoints.seconds, to_mib(run.checkpoints.bytes), o.save));
  print_row("loss", fmt::format("{:.4f}", r.loss.last.value_or(0)), fmt::format("first {:.4f}, {}", r.loss.first.value_or(0), r.loss.unit));
  if (run.evaluated)
    print_row("held out", fmt::format("{:.4f}", run.evaluated->loss),
              fmt::format("accuracy {:.2f} % of {} {}s", run.evaluated->accuracy * 100, run.evaluated->counted, term_name(o)));
  if (run.measured.stopped)
    fmt::print("  stopped by {} after {} of {} timed steps\n", run.unsaved.empty() ? "a signal" : "a checkpoint that couldn't be written",
               run.measured.step_seconds.size(), run.launch.timed);
  if (!run.replicas_equal) fmt::print("  replicas' weights DIFFER after the last step\n");
  for (auto const& reason : record.unofficial) fmt::print("  unofficial: {} {}\n", record::code(reason.reason), reason.detail);
}

void print_last_line(RankContext const& context, record::Record const& record, BenchRun const& run) {
  record::Result const& r = *record.result;
  fmt::print("SHARDMARK {} {} {} tokens_per_second={:.1f} step_ms={:.1f}", context.options.program, record::name(record.verdict),
             record.official() ? "official" : "unofficial", r.tokens_per_second.value_or(0), r.step_seconds.median.value_or(0) * 1e3);
  if (run.evaluated) fmt::print(" held_out_loss={:.4f} accuracy={:.4f}", run.evaluated->loss, run.evaluated->accuracy);
  fmt::print("\n");
}

void write_outputs(Options const& options, record::Record const& record, record::RunFolder& folder) {
  folder.write(record);
  if (!options.json.empty() && options.json != "-") record::append_line(options.json, record::to_json_line(record));
  if (!options.csv.empty()) record::append_line_under(options.csv, record::csv_header(), record::to_csv_line(record));
}

/// All rules in rounds behind the run that was asked for. @pre one rank
void compare_rules(RankContext const& context, std::shared_ptr<Dataset const> const& data, BenchRun const& run) {
  Options const& options = context.options;
  RuleTable const table = measure_rules(context, data);
  fmt::print("\n{}\n", to_text(table));
  if (options.svg.empty()) return;
  record::replace_file(options.svg, to_svg(table, describe_run(options, options.program, run.job.model->spec, 1)));
  fmt::print("  picture: {}\n", options.svg);
}

}  // namespace

Exit run_bench(RankContext const& context) {
  Options const& options = context.options;
  int const replicas = context.strategy.mesh(options, context.world.size()).data;
  auto const data = build_dataset(options, replicas, JobPurpose::training);
  record::RunFolder* folder = nullptr;
  if (context.prints()) {
    for (auto const& [path, option] : {std::pair{options.json, "--json"}, {options.csv, "--csv"}, {options.trace, "--trace"}})
      if (!path.empty() && path != "-") record::require_appendable(path, option);
    if (!options.svg.empty()) require_new_file(options.svg, "--svg");
    require_save_folder(options);
    folder = &begin_run(options.out, record::run_name(options.program));
    folder->write(
        start_record(context, build_job(options, context.strategy, context.world.size(), options.dtype, JobPurpose::training, data)));
  }
  auto checkpoints = context.prints() ? make_save_folder(options) : std::nullopt;
  Proofs const proofs = prove_timed_configuration(context, data);
  bool const compares = context.strategy.compares_rules() && options.rounds > 0 && options.json != "-";
  Options timed = options;
  if (compares) timed.svg.clear();  // it is the comparison's
  BenchRun const run = time_run({timed, context.strategy, context.world, context.board}, data, std::move(checkpoints));
  record::Record const record = make_record(context, run, proofs);
  if (context.prints()) {
    // What was measured is printed even if no file takes it.
    std::exception_ptr unwritten;
    try {
      write_outputs(options, record, *folder);
    } catch (Error const&) {
      unwritten = std::current_exception();
    }
    if (options.json == "-") {
      fmt::print("{}\n", record::to_json_line(record));
    } else {
      print_run(context, run, record);
      if (compares && !run.measured.stopped) compare_rules(context, data, run);
      fmt::print("  record: {}\n", folder->file("record.json"));
      print_last_line(context, record, run);
    }
    if (!run.unsaved.empty()) throw RankFailure(run.unsaved);
    if (unwritten) std::rethrow_exception(unwritten);
  }
  return record.verdict == record::Verdict::failed ? Exit::verification_failed : Exit::good;
}

}  // namespace shardmark
