// Rounds: every strategy once a round in random order, rebuilt each time, ratios within a round. One job, one table.

#include "app/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "app/describe.hpp"
#include "app/rounds.hpp"
#include "app/run_end.hpp"
#include "comm/fabric.hpp"
#include "metrics/clock.hpp"
#include "record/files.hpp"
#include "record/run_folder.hpp"

namespace shardmark {
namespace {

constexpr auto nap = std::chrono::milliseconds(2);
constexpr std::int64_t default_steps = 10, default_warmup = 2;

std::vector<std::unique_ptr<Strategy>> const* entered = nullptr;  // run_ranks takes a plain function; set once, before ranks start

/// Ranks that have nothing to do sleep: spinning would take the core's clock and memory from the one that is measured.
void sleep_until_all_arrive(HostExchange& exchange, StatusBoard& board) {
  Tensor flag = exchange.arena().make(DType::f64, {1}, Book::workspace, exchange.stream());
  *flag.view.as<double>() = 1;
  Request request =
      exchange.world().post(exchange.stream(), Exchange{.what = Collective::all_reduce, .send = flag, .recv = flag, .purpose = "sleep"});
  while (!request.test()) {
    board.beat();
    std::this_thread::sleep_for(nap);
  }
  request.wait(exchange.stream());
}

/// What all are asked for, with what the strategy usually does where nothing was asked.
Options options_for(Options options, Strategy const& strategy) {
  options.program = strategy.name();
  options.extra = strategy.offers();
  options.recompute = strategy.usual_recompute();
  if (!options.micros_given) options.micros = strategy.usual_micros();
  return options;
}

/// Runs `body` on the entrant's ranks; the others sleep.
template <class F>
void on_ranks_of(Entrant const& entrant, RankContext const& all, HostExchange& exchange, F&& body) {
  Options const options = options_for(all.options, *entrant.strategy);
  if (entrant.ranks == all.world.size()) {
    body(RankContext{options, *entrant.strategy, all.world, all.board});
  } else if (all.world.rank() == 0) {
    auto alone = make_self();
    body(RankContext{options, *entrant.strategy, *alone, all.board});
  }
  all.board.set(-1, RankState::waiting, "until all ranks are here");
  sleep_until_all_arrive(exchange, all.board);
}

/// Why an entrant's numbers mean something else than serial's; absent: they are equal.
std::optional<std::string> no_equivalence(Options const& options, int replicas) {
  if (options.model != ModelKind::convnet) return std::nullopt;
  if (replicas > 1 && options.batch_norm != BatchNormPolicy::sync)
    return Refusal{"batch norm of each replica's own samples", "serial training normalises the whole batch, which is another function",
                   "use --batch-norm sync"}
        .text();
  if (options.micros > 1 && !options.micros_given)
    return Refusal{"batch norm of each micro-batch's own samples", "serial training normalises the whole batch, which is another function",
                   "give all as many by --microbatches"}
        .text();
  return std::nullopt;
}

/// Why it can't run here; absent: it can.
std::optional<std::string> obstacle(Options const& options, Strategy const& strategy, int ranks,
                                    std::shared_ptr<Dataset const> const& data) {
  try {
    build_job(options, strategy, ranks, options.dtype, JobPurpose::training, data);
  } catch (BadRequest const& refused) {
    return refused.what();
  }
  return no_equivalence(options, strategy.mesh(options, ranks).data);
}

std::vector<Entrant> entrants_for(RankContext const& context, std::shared_ptr<Dataset const> const& data) {
  std::vector<Entrant> out;
  for (auto const& strategy : *entered) {
    Entrant e;
    e.strategy = strategy.get();
    e.ranks = strategy->name() == "serial" ? 1 : context.world.size();
    e.left_out = obstacle(options_for(context.options, *strategy), *strategy, e.ranks, data).value_or("");
    out.push_back(e);
  }
  return out;
}

void take(Entrant& e, BenchRun const& run, record::Record const& record) {
  record::Result const& r = *record.result;
  e.tokens_per_second.push_back(r.tokens_per_second.value_or(0));
  e.step_seconds.push_back(r.step_seconds.median.value_or(0));
  e.predicted_seconds.push_back(r.step_seconds.predicted.value_or(0));
  e.exposed_seconds.push_back(run.measured.waiting_seconds);
  e.peak_bytes = r.memory_bytes.ledger_peak;
  e.planned_bytes = r.memory_bytes.predicted.value_or(0);
  e.sent_bytes = 0;
  for (record::Comm const& comm : r.comm) e.sent_bytes += comm.bus_bytes_per_rank;
  if (run.job.mesh.pipeline > 1 && r.bubble_fraction.value) e.bubble.push_back(*r.bubble_fraction.value);
  if (run.stages)
    for (StageReport::Stage const& stage : run.stages->stages) e.sent_bytes = std::max(e.sent_bytes, stage.sent_bytes);
  if (run.shares) e.sent_bytes = 0;  // what rank 0 takes stands in the record
  if (run.shares)
    for (RankShare const& share : run.shares->ranks) e.sent_bytes = std::max(e.sent_bytes, share.counted.sent);
  e.first_loss = r.loss.first.value_or(0);
  e.loss = r.loss.last.value_or(0);
  if (run.evaluated) e.evaluated = run.evaluated;
  if (!run.replicas_equal) e.verdict = record::Verdict::failed;
}

Exit compare_on_ranks(RankContext const& context) {
  Options const& options = context.options;
  HostExchange exchange(context.world);
  std::int64_t const began = now_ns();
  Comparison comparison;
  comparison.rounds = options.rounds;
  comparison.updates = options.warmup + options.steps;
  record::RunFolder* folder = context.prints() ? &begin_run(options.out, record::run_name("compare")) : nullptr;
  auto const data = build_dataset(options, context.world.size(), JobPurpose::training);
  comparison.entrants = entrants_for(context, data);
  auto const say = [&](std::string const& line) {
    if (context.prints()) fmt::print(stderr, "{}\n", line);
  };

  std::vector<Proofs> proofs(comparison.entrants.size());
  for (std::size_t i = 0; i < comparison.entrants.size(); ++i) {
    Entrant& e = comparison.entrants[i];
    if (!e.left_out.empty()) continue;
    if (options.verify_in_bench) say(fmt::format("proving {} on {}", e.strategy->name(), count_of(e.ranks, "rank")));
    on_ranks_of(e, context, exchange, [&](RankContext const& c) { proofs[i] = prove_timed_configuration(c, data); });
    e.verdict = proofs[i].verdict;
  }
  comparison.verify_seconds = seconds_between(began, now_ns());
  for (int round = 0; round < comparison.rounds; ++round) {
    for (std::size_t i : order_of_round(comparison.entrants.size(), options.seed, round)) {
      Entrant& e = comparison.entrants[i];
      if (!e.left_out.empty()) continue;
      say(fmt::format("round {} of {}: {}", round + 1, comparison.rounds, e.strategy->name()));
      on_ranks_of(e, context, exchange, [&](RankContext const& c) {
        BenchRun const run = time_run(c, data);
        if (run.measured.stopped) return;
        record::Record record = make_record(c, run, proofs[i]);
        record.run.round = round + 1;
        if (!context.prints()) return;
        take(e, run, record);
        folder->write(record);
        record::append_line(folder->file("records.jsonl"), record::to_json_line(record));
      });
      // Rates of a round that not all have run can't be compared.
      if (exchange.max(stop_requested()) > 0)
        throw RankFailure(fmt::format("stopped by a signal in round {} of {}; the runs before it are in records.jsonl of the run folder",
                                      round + 1, comparison.rounds));
    }
  }
  comparison.seconds = seconds_between(began, now_ns());
  bool failed = false;
  if (context.prints()) {
    auto const model = build_model(options, data->shape(), options.dtype, JobPurpose::training);
    std::string const table = compare_table(comparison, options, model->spec, context.world.size(), context.world.name());
    for (Entrant const& e : comparison.entrants) failed = failed || e.verdict == record::Verdict::failed;
    folder->log(table);
    fmt::print("{}{}    records: {}\n", table,
               comparison.rounds < 6 ? "UNOFFICIAL rounds_incomplete (fewer than 6)" : "UNOFFICIAL launch_set_incomplete",
               folder->file("records.jsonl"));
  }
  failed = exchange.max(failed ? 1 : 0) > 0;
  return failed ? Exit::verification_failed : Exit::good;
}

constexpr char const* overview =
    "shardmark: benchmarks and proofs for training neural networks on many processors\n\n"
    "  shardmark compare [options]   strategies at one model, batch and seed, in one table\n"
    "  serial | ddp | dp | accumulation | checkpointing | model_parallel | gpipe | pipedream | tensor_parallel |\n"
    "  zero   plan|verify|bench [options]   one strategy\n\n"
    "Every program has --help and --version.\n";

}  // namespace

int run_shardmark(std::vector<std::unique_ptr<Strategy>> const& strategies, Strategy const& needed, int argc, char** argv) {
  entered = &strategies;
  std::string_view const command = argc > 1 ? argv[1] : "";
  if (command != "compare" && command != "--version") {
    bool const help = command == "--help" || command == "-h";
    fmt::print(help ? stdout : stderr, "{}", overview);
    return int(help ? Exit::good : Exit::bad_request);
  }
  try {
    Usage usage;
    usage.program = "shardmark compare";
    usage.summary =
        "Runs serial, ddp, dp, model_parallel, gpipe, pipedream and tensor_parallel at the same model, batch and seed; one table.";
    usage.commands = Usage::Commands::no;
    usage.left_out = {"ranks", "json", "csv", "dry-run", "inject", "trace", "save", "save-every", "resume"};
    usage.bench_steps = default_steps;
    usage.bench_warmup = default_warmup;
    int const skipped = command == "compare" ? 1 : 0;
    if (skipped == 0) usage.program = "shardmark";
    ParseResult const parsed = parse_options(usage, argc - skipped, argv + skipped);
    if (!parsed.options) {
      fmt::print("{}", parsed.text);
      return int(Exit::good);
    }
    require_input(parsed.options->rounds > 0, {"--rounds 0", "there is nothing to compare", "give 1 or more"});
    return run_ranks(*parsed.options, argc, argv, compare_on_ranks, needed);
  } catch (Error const& error) {
    return report_before_start(error);
  }
}

}  // namespace shardmark
