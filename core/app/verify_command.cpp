// `verify`, and the proofs that `bench` makes of the configuration that it times.

#include <fmt/format.h>

#include <algorithm>

#include "app/bench.hpp"
#include "app/coarse_schedule.hpp"
#include "app/describe.hpp"
#include "app/hooks.hpp"
#include "base/build_info.hpp"
#include "comm/fabric.hpp"
#include "metrics/host.hpp"
#include "metrics/memory.hpp"
#include "record/files.hpp"
#include "verify/verify.hpp"

namespace shardmark {
namespace {

constexpr double longest_naive_seconds = 60;
constexpr double naive_flops_per_second = 2e9;
constexpr double perturbed_runs = 8, cost_of_magnitudes = 3;  // a run that also finds how far rounding moves each result

/// How long the naive reference would take; beyond a minute, its place is taken by the split-invariant fp64 matmul, as in situ, and
/// the table says so.
double naive_reference_seconds(Job const& job, int ranks) {
  double flops = 0;
  for (auto const& work : dry_run(serial_twin(job), 0).work) flops += work.flops;
  return flops / naive_flops_per_second * cost_of_magnitudes * (1 + perturbed_runs / ranks);
}

VerifyRequest request_for(RankContext const& context, Options const& options, std::shared_ptr<Dataset const> data) {
  VerifyRequest request;
  request.strategy = options.program;
  int const ranks = context.world.size();
  Strategy const& strategy = context.strategy;
  request.make_job = [options, &strategy, ranks, data](DType dtype) {
    return build_job(options, strategy, ranks, dtype, JobPurpose::proof, data);
  };
  request.dtype = options.dtype;
  auto const model = build_model(options, data->shape(), options.dtype, JobPurpose::proof);
  request.traffic = strategy.predict(options, model->shapes(), ranks).traffic;
  request.steps = options.deterministic ? options.steps : 0;
  Determinism const determinism = options.deterministic ? Determinism::deterministic : Determinism::fastest;
  request.candidate_backend = [options, determinism](DType) { return build_backend(options, determinism); };
  request.reference_backend = [] { return make_reference_backend(); };
  if (naive_reference_seconds(request.make_job(DType::f64), ranks) > longest_naive_seconds)
    request.reference_backend = [] { return make_cpu_backend(Determinism::deterministic); };
  if (options.inject)
    request.candidate_hooks = [fault = *options.inject, rank = context.world.rank()] {
      std::vector<std::unique_ptr<Hook>> hooks;
      hooks.push_back(std::make_unique<InjectHook>(fault, rank));
      return hooks;
    };
  request.beat = [&board = context.board] {
    board.beat();
    if (int const signal = stop_requested()) throw RankFailure(fmt::format("stopped by signal {} while it was verified", signal));
  };
  return request;
}

std::vector<std::pair<std::string, std::string>> environment_of(RankContext const& context) {
  BuildInfo const& build = build_info();
  return {{"version", std::string(build.version)},
          {"commit", std::string(build.commit)},
          {"compiler", std::string(build.compiler)},
          {"flags", std::string(build.flags)},
          {"mpi", launched_by_mpi() ? MpiSession::library_version() : "none"},
          {"comm", std::string(context.world.name())},
          {"host", read_host_info().hostname},
          {"ranks", std::to_string(context.world.size())},
          {"seed", std::to_string(context.options.seed)},
          {"options", describe_json(context.options)}};
}

record::Verdict recorded(Verdict verdict) {
  switch (verdict) {
    case Verdict::verified:
      return record::Verdict::verified;
    case Verdict::failed:
      return record::Verdict::failed;
    case Verdict::unverified:
      return record::Verdict::unverified;
  }
  return record::Verdict::unverified;
}

Check const* worst_of(Verification const& result) {
  Check const* worst = nullptr;
  for (Check const& c : result.checks)
    if (c.kind == CheckKind::bounded && (worst == nullptr || !(c.ratio <= worst->ratio))) worst = &c;
  return worst;
}

std::string reference_name(std::string_view backend) { return fmt::format("serial/{} fp64", backend); }

/// The reduced twin as it will be timed (bounded); deterministic besides, for the bitwise checks.
Verification prove_reduced(RankContext const& context, record::ReducedTwin& out) {
  int const chunks = int(coarse_schedule(context.strategy, context.options, context.world.size()).lane_of_chunk.size());
  int const parts = context.strategy.mesh(context.options, context.world.size()).tensor;
  Options small = reduced_twin(context.options, chunks, parts);
  int const replicas = context.strategy.mesh(small, context.world.size()).data;
  auto const data = build_dataset(small, replicas, JobPurpose::proof);
  Verification result = verify(request_for(context, small, data), context.world);
  if (!small.deterministic) {
    small.deterministic = true;
    Verification exact = verify(request_for(context, small, data), context.world);
    result.verdict = worse(result.verdict, exact.verdict);
    result.steps = exact.steps;
    result.checks.insert(result.checks.end(), exact.checks.begin(), exact.checks.end());
    if (result.first_divergence.empty()) {
      result.first_divergence = exact.first_divergence;
      result.fingerprint = exact.fingerprint;
    }
  }
  auto const model = build_model(small, data->shape(), small.dtype, JobPurpose::proof);
  out.model = describe_model(small, model->spec);
  out.reference = reference_name("reference");
  out.steps = result.steps;
  out.checks = std::int64_t(result.checks.size());
  out.bitwise = result.count(CheckKind::bitwise);
  out.bounded = result.count(CheckKind::bounded);
  out.worst_ratio = result.worst_ratio();
  return result;
}

/// Step 1 of exactly the timed configuration, at full size, against fp64 by the fast deterministic matmul.
VerifyRequest in_situ_request(RankContext const& context, std::shared_ptr<Dataset const> const& data) {
  VerifyRequest request = request_for(context, context.options, data);
  request.scope = Scope::in_situ;
  request.steps = 0;
  Options const& options = context.options;
  Strategy const& strategy = context.strategy;
  int const ranks = context.world.size();
  request.make_job = [&options, &strategy, ranks, data](DType dtype) {
    return build_job(options, strategy, ranks, dtype, JobPurpose::training, data);
  };
  request.reference_backend = [] { return make_cpu_backend(Determinism::deterministic); };
  return request;
}

Verification prove_in_situ(RankContext const& context, VerifyRequest const& request, record::InSitu& out) {
  Verification result = verify(request, context.world);
  out.reference = reference_name("cpu");
  out.steps = 1;
  out.tensors = result.count(CheckKind::bounded) + result.count(CheckKind::null_gradient);
  out.worst_ratio = result.worst_ratio();
  if (Check const* worst = worst_of(result)) out.worst_tensor = worst->tensor;
  return result;
}

/// Whether the fp64 reference of the timed configuration and the candidate fit into what this node has left. The same on every rank.
bool in_situ_fits(RankContext const& context, VerifyRequest const& request) {
  constexpr double envelope_bytes_per_parameter = 24;  // values, magnitudes and deviations that verify holds
  Job const reference = request.make_job(DType::f64);
  double const needed = double(dry_run(serial_twin(reference), 0).slab_bytes) +
                        envelope_bytes_per_parameter * double(reference.model->spec.elements()) +
                        double(dry_run(request.make_job(request.dtype), context.world.rank()).slab_bytes);
  HostExchange exchange(context.world);
  auto const hosts = exchange.gather_texts(read_host_info().hostname);
  auto const here = std::count(hosts.begin(), hosts.end(), hosts[std::size_t(context.world.rank())]);
  auto const available = read_available_memory();
  bool const fits = !available || needed * double(here) <= double(*available);
  return exchange.max(fits ? 0 : 1) == 0;
}

void print_failure(RankContext const& context, Verification const& result, std::string_view part) {
  if (context.prints() && result.verdict == Verdict::failed)
    fmt::print("{}: FAILED, first in {}; {}\n{}\n", part, result.first_divergence, result.fingerprint, table(result));
}

}  // namespace

Exit run_verify(RankContext const& context) {
  Options const& options = context.options;
  int const replicas = context.strategy.mesh(options, context.world.size()).data;
  auto const data = build_dataset(options, replicas, JobPurpose::proof);
  if (!options.json.empty() && options.json != "-" && context.prints()) record::require_appendable(options.json, "--json");
  Verification result = verify(request_for(context, options, data), context.world);
  Supplement supplement = context.strategy.supplement(context);
  result.add(std::move(supplement.checks));
  if (context.prints()) {
    auto const model = build_model(options, data->shape(), options.dtype, JobPurpose::proof);
    std::string const json = to_json(result, environment_of(context));
    if (options.json == "-") {
      fmt::print("{}\n", json);
    } else {
      fmt::print("{}   {}\n\n{}\n{}", describe_run(options, options.program + " verify", model->spec, replicas),
                 count_of(context.world.size(), "rank"), table(result), supplement.text);
      if (!options.json.empty()) record::append_line(options.json, json);
      fmt::print("SHARDMARK {} {} checks={} failed={} worst_ratio={:.3g} seconds={:.1f}\n", options.program, name(result.verdict),
                 result.checks.size(), result.count(Verdict::failed), result.worst_ratio(), result.seconds);
    }
  }
  return result.verdict == Verdict::failed ? Exit::verification_failed : Exit::good;
}

Proofs prove_timed_configuration(RankContext const& context, std::shared_ptr<Dataset const> const& data) {
  Proofs out;
  if (!context.options.verify_in_bench) {
    out.verification.reduced = Measured<record::ReducedTwin>::missing("--no-verify");
    out.verification.in_situ = Measured<record::InSitu>::missing("--no-verify");
    return out;
  }
  // The fault that a user injects belongs to the timed run; what is proven is the configuration.
  record::ReducedTwin reduced;
  record::InSitu in_situ;
  Verification const twin = prove_reduced(context, reduced);
  print_failure(context, twin, "reduced twin");
  out.verification.reduced = reduced;
  VerifyRequest const request = in_situ_request(context, data);
  out.in_situ_fits = in_situ_fits(context, request);
  if (out.in_situ_fits) {
    Verification const full = prove_in_situ(context, request, in_situ);
    print_failure(context, full, "in situ");
    out.verdict = recorded(worse(twin.verdict, full.verdict));
    out.verification.in_situ = in_situ;
    out.verification.seconds = twin.seconds + full.seconds;
  } else {
    out.verdict = recorded(worse(twin.verdict, Verdict::unverified));
    out.verification.in_situ = Measured<record::InSitu>::missing("the fp64 state of the timed configuration does not fit into memory");
    out.verification.seconds = twin.seconds;
  }
  out.verification.negative_control = Measured<record::NegativeControl>::missing("run verify --inject bitflip:rank=0 to see a check fail");
  return out;
}

}  // namespace shardmark
