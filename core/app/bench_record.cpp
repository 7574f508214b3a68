// From a timed run to its record.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <sstream>

#include "app/bench.hpp"
#include "app/describe.hpp"
#include "app/option_table.hpp"
#include "app/traffic_table.hpp"
#include "app/version.hpp"
#include "backend/cpu/matmul_paths.hpp"
#include "comm/fabric.hpp"
#include "data/sha256.hpp"
#include "metrics/clock.hpp"
#include "metrics/flops.hpp"
#include "metrics/host.hpp"
#include "metrics/placement.hpp"
#include "metrics/statistics.hpp"
#include "record/provenance.hpp"

namespace shardmark {
namespace {

record::Input describe_input(RankContext const& context, Job const& job) {
  Options const& o = context.options;
  bool const gpt = o.model == ModelKind::gpt;
  DataSource const& source = job.data->source();
  record::Input in;
  in.strategy = o.program;
  in.model = std::string(name(o.model));
  in.layers = o.layers;
  in.hidden = o.hidden;
  if (gpt) {
    in.heads = o.heads;
    in.seq = o.seq;
    in.vocab = o.vocab;
    in.tied_embeddings = o.tied_embeddings;
  }
  in.dropout = o.dropout;
  in.parameters = job.model->spec.elements();
  in.parameters_embedding = embedding_parameters(job.model->spec);
  in.dtype = std::string(name(o.dtype));
  in.backend = std::string(name(o.backend));
  in.comm = std::string(context.world.name());
  in.deterministic = o.deterministic;
  in.ranks = context.world.size();
  in.dp = job.mesh.data;
  in.pp = job.mesh.pipeline;
  in.tp = job.mesh.tensor;
  in.global_batch_size = job.global_batch;
  in.micro_batch_size = piece_of(piece_of(job.global_batch, job.replicas, 0).size(), job.micros, 0).size();
  in.num_microbatches = job.micros;
  in.bucket_mib = o.bucket_mib;
  in.optimizer = std::string(name(o.optimizer));
  in.lr = o.lr;
  if (o.clip_norm > 0) in.clip_norm = o.clip_norm;
  in.weight_decay = o.weight_decay;
  in.seed = o.seed;
  in.data = {source.kind, source.path.empty() ? std::nullopt : std::optional(source.path), source.bytes,
             source.sha256.empty() ? std::nullopt : std::optional(source.sha256)};
  if (o.inject) in.injected_fault = to_string(*o.inject);
  in.config_sha256 = sha256_hex(describe_json(o));
  return in;
}

std::vector<record::MatmulPath> describe_paths() {
  std::vector<record::MatmulPath> out;
  for (cpu::MatmulChoice const& choice : cpu::matmul_choices()) {
    record::MatmulPath path{cpu::to_string(choice.shape), std::string(cpu::name(choice.path)), {}};
    for (std::size_t p = 0; p < cpu::paths; ++p)
      if (choice.rates[p] > 0) path.flops_per_second.emplace_back(cpu::name(cpu::Path(p)), choice.rates[p]);
    out.push_back(std::move(path));
  }
  return out;
}

record::Memory describe_memory(BenchRun const& run, HostExchange& exchange) {
  auto const peaks = exchange.gather({double(run.peak_mine), double(run.plan.peak_total), double(run.measured.pss_peak.value_or(0))});
  auto const worst = std::max_element(peaks.begin(), peaks.end(), [](auto const& a, auto const& b) { return a[0] < b[0]; });
  std::vector<double> books_mine(run.peak_by_book.begin(), run.peak_by_book.end());
  auto const by_book = exchange.gather(books_mine)[std::size_t(worst - peaks.begin())];
  auto const of = [&](Book book) { return std::int64_t(by_book[std::size_t(book)]); };
  record::Memory m;
  m.rank = int(worst - peaks.begin());
  m.parameters = of(Book::parameters);
  m.gradients = of(Book::gradients);
  m.optimizer = of(Book::optimizer);
  m.activations = of(Book::activations);
  m.weight_versions = of(Book::versions);
  m.communication = of(Book::communication);
  m.workspace = of(Book::workspace) + of(Book::data);
  m.ledger_peak = std::int64_t((*worst)[0]);
  m.predicted = std::int64_t((*worst)[1]);
  m.ratio = (*worst)[0] / (*worst)[1];
  if ((*worst)[2] > 0) {
    m.pss_peak = std::int64_t((*worst)[2]);
    m.unaccounted = std::int64_t((*worst)[2] - (*worst)[0]);
  } else {
    m.pss_peak = run.measured.pss_peak;
  }
  m.device_used_peak = Measured<std::int64_t>::missing("no accelerator in use");
  if (allocations_are_counted()) m.allocations_after_warmup = run.measured.allocations;
  return m;
}

std::string implementation_of(RankContext const& context, Job const& job) {
  return fmt::format("{}, {}", context.world.name(), job.reduction == Reduction::fixed_tree ? "fixed tree" : "vendor's");
}

/// What is exchanged along an axis by one collective, over all purposes that have a formula.
std::optional<record::Comm> comm_along(Axis axis, RankContext const& context, BenchRun const& run, Collective what) {
  record::Comm c;
  c.op = std::string(name(what));
  c.axis = axis == Axis::tensor ? "tp" : "dp";
  c.implementation = implementation_of(context, run.job);
  double predicted = 0;
  for (DryRun::Traffic const& t : run.plan.collectives) {
    auto const formula = formula_bytes(t, run.job, run.formula);
    if (t.axes != axes(axis) || t.what != what || !formula) continue;
    c.calls_per_step += t.calls;
    c.size_bytes += t.bytes;
    c.bus_bytes_per_rank += t.sent_bytes;
    predicted += *formula;
  }
  c.bus_bytes_predicted = std::llround(predicted);
  if (c.calls_per_step == 0) return std::nullopt;
  for (TrafficForm const& form : run.formula.traffic) {
    if (form.axes != axes(axis) || form.what != what) continue;
    c.calls_predicted += std::llround(form.calls * run.job.micros);  // of a call an update, a fraction a micro-batch
  }
  c.busbw_probe_GBps = run.probe.all_reduce_bytes_per_second * 1e-9;
  c.busbw_GBps = Measured<double>::missing("the time of one collective isn't seen from a blocked wait");
  c.overlap_fraction = Measured<double>::missing("waits of all collectives are counted together");
  c.exposed_seconds = run.measured.waiting_seconds;
  c.nic_over_formula = Measured<double>::missing("no network card was used");
  return c;
}

std::vector<record::Comm> describe_comm(RankContext const& context, BenchRun const& run) {
  std::vector<record::Comm> out;
  int const n = run.job.mesh.data;
  for (DryRun::Traffic const& t : run.plan.collectives) {
    if (t.purpose != "gradients") continue;
    record::Comm c;
    c.op = std::string(name(t.what));
    c.axis = "dp";
    c.implementation = implementation_of(context, run.job);
    c.calls_per_step = run.reductions_per_update;
    c.calls_predicted = run.formula.reductions;
    c.size_bytes = t.bytes;
    c.bus_bytes_per_rank = std::max(t.sent_bytes, t.received_bytes);  // of a gather, what rank 0 takes
    c.bus_bytes_predicted = std::int64_t(run.formula.wire_elements * double(width(accumulator(run.job.model->dtype))));
    if (n > 1) c.busbw_probe_GBps = run.probe.all_reduce_bytes_per_second * 1e-9;
    c.busbw_GBps = Measured<double>::missing("the time of one collective isn't seen from a blocked wait");
    c.exposed_seconds = run.measured.waiting_seconds;
    double const all = double(c.bus_bytes_per_rank) / run.probe.all_reduce_bytes_per_second;
    if (n > 1 && all > 0) c.overlap_fraction = std::clamp(1 - run.measured.waiting_seconds / all, 0.0, 1.0);
    c.nic_over_formula = Measured<double>::missing("no network card was used");
    out.push_back(c);
  }
  // Weights that replicas share.
  if (auto comm = comm_along(Axis::data, context, run, Collective::all_gather)) out.push_back(std::move(*comm));
  for (Collective what : {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather})
    if (auto comm = comm_along(Axis::tensor, context, run, what)) out.push_back(std::move(*comm));
  return out;
}

record::Bubble describe_bubble(BenchRun const& run) {
  if (run.job.mesh.pipeline == 1) return {0.0, 0.0};
  if (!run.stages) {
    auto const missing = Measured<double>::missing("its costs come from warm-up steps, and there was none, or the run was stopped");
    return {missing, missing};
  }
  record::Bubble out{0.0, 0.0};
  for (StageReport::Stage const& stage : run.stages->stages) {
    out.value = std::max(*out.value, stage.bubble);
    out.predicted = std::max(*out.predicted, stage.simulated_bubble);
  }
  return out;
}

record::Result describe_result(RankContext const& context, BenchRun const& run, HostExchange& exchange) {
  Options const& o = context.options;
  Measurement const& m = run.measured;
  record::Result r;
  double sum = 0;
  for (double s : m.step_seconds) sum += s;
  r.loop_seconds = {m.loop_seconds, sum / m.loop_seconds};
  r.step_seconds = record::step_seconds(m.step_seconds);
  r.step_seconds.predicted = run.prediction.step_seconds;
  if (r.step_seconds.median) r.step_seconds.ratio = *r.step_seconds.median / run.prediction.step_seconds;
  r.step_seconds.basis = record::Basis::probe;
  for (int rank = 0; rank < context.world.size(); ++rank) {
    std::int64_t slowest = 0;
    for (std::size_t s = 0; s < m.step_seconds.size(); ++s) slowest += m.by_rank[std::size_t(rank)][s] == m.step_seconds[s] ? 1 : 0;
    if (slowest > 0) r.step_seconds.slowest_rank_histogram.emplace_back(rank, slowest);
  }
  r.tokens_per_second = double(m.counted) / m.loop_seconds;
  r.tps = double(m.counted) / m.loop_seconds / context.world.size();
  std::int64_t const parameters = run.job.model->spec.elements();
  if (o.model == ModelKind::gpt) {
    FlopsPerToken const f = gpt_flops_per_token({.layers = o.layers,
                                                 .hidden = o.hidden,
                                                 .seq = o.seq,
                                                 .vocab = o.vocab,
                                                 .parameters = parameters,
                                                 .parameters_embedding = embedding_parameters(run.job.model->spec)});
    r.flops_per_token = record::FlopsPer{f.torchtitan, f.megatron};
  } else if (o.model == ModelKind::convnet) {
    double forward = 0;
    for (Block const& block : run.job.model->blocks) forward += block.forward_flops;
    r.flops_per_token = record::FlopsPer{convnet_flops_per_sample(forward), convnet_flops_per_sample(forward)};
  } else {
    r.flops_per_token = record::FlopsPer{mlp_flops_per_sample(parameters), mlp_flops_per_sample(parameters)};
  }
  r.mfu = Measured<double>::missing("no vendor peak for this device");
  r.hfu = r.mfu;
  double matmul = 0;
  for (auto const& work : run.plan.work) matmul += is_product(work.kind) ? work.flops : 0;
  double const step = r.step_seconds.median.value_or(0);
  r.gemm_fraction.gemm_flops_per_second = run.probe.matmul_flops_per_second;
  if (step > 0) r.gemm_fraction.value = matmul / step / run.probe.matmul_flops_per_second;
  r.matmul_paths = describe_paths();
  r.phases_seconds = run.phases ? Measured<record::PhasesSeconds>(*run.phases)
                                : Measured<record::PhasesSeconds>::missing("the run was stopped before its traced updates");
  r.comm = describe_comm(context, run);
  r.bubble_fraction = describe_bubble(run);
  r.staleness_steps = run.job.delays.empty() ? 0 : *std::max_element(run.job.delays.begin(), run.job.delays.end());
  if (run.checkpoints.saved > 0) r.checkpoints = record::Checkpoints{run.checkpoints.saved, run.checkpoints.bytes, run.checkpoints.seconds};
  r.memory_bytes = describe_memory(run, exchange);
  r.loss.unit = o.model == ModelKind::gpt ? "nat/token" : "nat/sample";
  r.loss.first = m.first_loss;
  if (!m.windows.empty()) {
    r.loss.last = m.windows.back().loss;
    r.loss.update = m.windows.back().update;
    r.grad_norm_last = m.windows.back().norm;
  }
  r.loss.nonfinite_steps = std::count_if(m.windows.begin(), m.windows.end(), [](WindowResult const& w) { return w.skipped; });
  r.energy_joules = Measured<double>::missing("not read in this version");
  return r;
}

std::vector<record::Rank> describe_ranks(RankContext const& context, BenchRun const& run, HostExchange& exchange) {
  Binding const mine = read_binding();
  ProcessEvents const events = read_process_events();
  auto const numbers = exchange.gather(
      {double(mine.numa), run.probe.matmul_flops_per_second * 1e-9, double(events.major_page_faults), double(events.involuntary_switches)});
  auto const hosts = exchange.gather_texts(read_host_info().hostname), cpus = exchange.gather_texts(format_cpus(mine.cpus));
  std::vector<record::Rank> out;
  for (int r = 0; r < context.world.size(); ++r) {
    auto const& n = numbers[std::size_t(r)];
    record::Rank rank;
    rank.rank = r;
    rank.host = hosts[std::size_t(r)];
    rank.local_rank = int(std::count(hosts.begin(), hosts.begin() + r, rank.host));
    rank.cpus = cpus[std::size_t(r)];
    if (n[0] >= 0) rank.numa = int(n[0]);
    rank.accelerator = Measured<std::string>::missing("none in use");
    rank.nic = Measured<std::string>::missing("not looked for in this version");
    auto const& steps = run.measured.by_rank[std::size_t(r)];
    if (!steps.empty()) rank.step_median = median(steps);
    rank.gemm_gflops = n[1];
    rank.page_faults_major = std::int64_t(n[2]);
    rank.ctx_switches_involuntary = std::int64_t(n[3]);
    out.push_back(rank);
  }
  return out;
}

/// Whether ranks have cores of their own; a warning names those that don't (case 110).
int find_shared_cores(RankContext const& context, HostExchange& exchange) {
  std::string mine;
  for (int core : read_binding().cores) mine += fmt::format("{} ", core);
  auto const cores = exchange.gather_texts(mine), nodes = exchange.gather_texts(read_host_info().boot_id.value_or("this node"));
  std::vector<Placement> placements;
  for (int r = 0; r < context.world.size(); ++r) {
    Placement placement{.rank = r, .node = nodes[std::size_t(r)], .cores = {}};
    std::istringstream words(cores[std::size_t(r)]);
    for (int core = 0; words >> core;) placement.cores.push_back(core);
    placements.push_back(std::move(placement));
  }
  auto const crowding = find_crowding(placements);
  if (context.prints())
    for (Crowding const& c : crowding) fmt::print(stderr, "warning: {}; start fewer ranks, or bind them (--bind-to core)\n", c.text());
  return ranks_per_core(crowding);
}

/// The proofs have the fault too, unless it comes at a step that they don't reach: then they don't speak for the timed run.
bool spoils_what_was_proven(std::optional<Fault> const& fault) {
  using enum Fault::Kind;
  return fault && (fault->kind == bitflip || fault->kind == nan || fault->kind == drop_reduction);
}

}  // namespace

record::Record start_record(RankContext const& context, Job const& job) {
  Options const& o = context.options;
  record::Record r;
  r.record_id = record::new_record_id();
  r.run.started = record::utc_now();
  r.run.argv = o.argv;
  r.run.launcher = record::read_launcher();
  r.run.slurm = record::read_slurm();
  r.input = describe_input(context, job);
  r.method.clock_resolution_ns = measure_clock_resolution_ns();
  r.method.warmup_steps = o.warmup;
  r.method.timed_steps = o.steps;
  r.system = record::describe_system(read_host_info());
  if (launched_by_mpi()) r.software.mpi = record::Mpi{MpiSession::library_version(), MpiSession::header_version()};
  r.software.onednn = onednn_version();
  r.software.isa_used = build_backend(o, Determinism::fastest)->instruction_set();
  r.build = record::read_build();
  r.environment = record::read_environment();
  return r;
}

record::Record make_record(RankContext const& context, BenchRun const& run, Proofs const& proofs) {
  HostExchange exchange(context.world);
  record::Record r = start_record(context, run.job);
  r.result = describe_result(context, run, exchange);
  r.ranks = describe_ranks(context, run, exchange);
  r.system.ranks_per_core = find_shared_cores(context, exchange);
  r.method.lag1_autocorrelation = lag1_autocorrelation(run.measured.step_seconds).value_or(std::nan(""));
  r.method.halves_ratio = halves_ratio(run.measured.step_seconds).value_or(std::nan(""));
  r.method.warmup_steps = run.launch.warmup;
  if (run.launch.before > 0) r.run.resumed_from_update = run.launch.before;
  r.method.timed_steps = std::int64_t(run.measured.step_seconds.size());
  r.verdict = proofs.verdict;
  if (r.verdict == record::Verdict::verified && spoils_what_was_proven(context.options.inject)) r.verdict = record::Verdict::unverified;
  r.verification = proofs.verification;
  if (r.verification.in_situ)
    r.verification.in_situ = [&] {
      record::InSitu in = *r.verification.in_situ;
      in.replica_hash_after_last_step = std::string(run.replicas_equal ? "equal" : "different");
      return in;
    }();
  if (!run.replicas_equal) r.verdict = record::Verdict::failed;
  r.run.ended = record::utc_now();
  r.run.state = !run.unsaved.empty() ? record::State::failed : run.measured.stopped ? record::State::cancelled : record::State::completed;
  r.run.exit_code = r.verdict == record::Verdict::failed ? int(Exit::verification_failed) : 0;
  if (!run.unsaved.empty()) r.run.exit_code = int(Exit::rank_failed);
  r.unofficial = record::reasons_against(r);
  if (!proofs.in_situ_fits) r.unofficial.push_back({record::Reason::in_situ_does_not_fit, "the timed configuration itself was not proven"});
  return r;
}

}  // namespace shardmark
