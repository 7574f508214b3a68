// The `result` part of a record.

#include "record/json_fields.hpp"
#include "record/record.hpp"

namespace shardmark::record {
namespace {

void write_loop(Fields& f, LoopSeconds const& loop) {
  f.put("value", loop.value);
  f.put("unit", "s");
  f.put("sum_of_step_max_over_loop", loop.sum_of_step_max_over_loop);
}

void write_interval(Fields& f, Measured<Interval> const& interval) {
  if (interval) {
    f.put("ci95", std::vector<double>{interval->low, interval->high});
  } else {
    f.missing("ci95", interval.reason());
  }
}

void write_steps(Fields& f, StepSeconds const& steps) {
  f.put("unit", "s");
  f.put("median", steps.median);
  write_interval(f, steps.ci95);
  f.put("mean", steps.mean);
  f.put("min", steps.min);
  f.put("p95", steps.p95);
  f.put("max", steps.max);
  f.put("n", steps.n);
  f.put("predicted", steps.predicted);
  f.put("ratio", steps.ratio);
  f.put("basis", steps.basis ? std::optional(name(*steps.basis)) : std::nullopt);
  f.put("samples", steps.samples);
  f.object("slowest_rank_histogram", steps.slowest_rank_histogram, [](Fields& g, auto const& histogram) {
    for (auto const& [rank, count] : histogram) g.put(std::to_string(rank).c_str(), count);
  });
}

/// A number with its unit.
void write_rate(Fields& f, char const* key, Measured<double> const& rate, char const* unit) {
  f.object(key, unit, [&](Fields& g, char const* text) {
    g.with_reason(rate);
    g.put("unit", text);
  });
}

void write_value(Fields& f, char const* key, Measured<double> const& value) {
  f.object(key, 0, [&](Fields& g, int) { g.with_reason(value); });
}

void write_path(Fields& f, MatmulPath const& path) {
  f.put("shape", path.shape);
  f.put("path", path.path);
  f.object("flops_per_second", path.flops_per_second, [](Fields& g, auto const& rates) {
    for (auto const& [name, rate] : rates) g.put(name.c_str(), rate);
  });
}

void write_gemm(Fields& f, GemmFraction const& gemm) {
  f.with_reason(gemm.value);
  f.put("gemm_flops_per_second", gemm.gemm_flops_per_second);
  f.put("basis", gemm.basis);
}

void write_phases(Fields& f, PhasesSeconds const& phases) {
  f.put("data", phases.data);
  f.put("forward", phases.forward);
  f.put("backward", phases.backward);
  f.put("comm_exposed", phases.comm_exposed);
  f.put("optimizer", phases.optimizer);
  f.put("other", phases.other);
  f.put("from_step", phases.from_step);
}

void write_comm(Fields& f, Comm const& comm) {
  f.put("op", comm.op);
  f.put("axis", comm.axis);
  f.put("implementation", comm.implementation);
  f.put("calls_per_step", comm.calls_per_step);
  f.put("calls_predicted", comm.calls_predicted);
  f.put("size_bytes", comm.size_bytes);
  f.put("bus_bytes_per_rank", comm.bus_bytes_per_rank);
  f.put("bus_bytes_predicted", comm.bus_bytes_predicted);
  f.put("busbw_GBps", comm.busbw_GBps);
  f.put("busbw_probe_GBps", comm.busbw_probe_GBps);
  f.put("exposed_seconds", comm.exposed_seconds);
  f.put("overlap_fraction", comm.overlap_fraction);
  f.put("nic_over_formula", comm.nic_over_formula);
}

void write_memory(Fields& f, Memory const& memory) {
  f.put("scope", memory.scope);
  f.put("rank", memory.rank);
  f.put("parameters", memory.parameters);
  f.put("gradients", memory.gradients);
  f.put("optimizer", memory.optimizer);
  f.put("activations", memory.activations);
  f.put("weight_versions", memory.weight_versions);
  f.put("communication", memory.communication);
  f.put("workspace", memory.workspace);
  f.put("ledger_peak", memory.ledger_peak);
  f.put("predicted", memory.predicted);
  f.put("ratio", memory.ratio);
  f.put("pss_peak", memory.pss_peak);
  f.put("device_used_peak", memory.device_used_peak);
  f.put("unaccounted", memory.unaccounted);
  f.put("allocations_after_warmup", memory.allocations_after_warmup);
}

void write_loss(Fields& f, Loss const& loss) {
  f.put("unit", loss.unit);
  f.put("first", loss.first);
  f.put("last", loss.last);
  f.put("update", loss.update);
  f.put("nonfinite_steps", loss.nonfinite_steps);
}

}  // namespace

std::string_view name(Basis basis) {
  switch (basis) {
    case Basis::formula:
      return "formula";
    case Basis::probe:
      return "probe";
    case Basis::trace_other_run:
      return "trace_other_run";
    case Basis::trace_same_run:
      return "trace_same_run";
  }
  return "?";
}

StepSeconds step_seconds(std::vector<double> samples) {
  StepSeconds out;
  out.n = std::int64_t(samples.size());
  if (!samples.empty()) {
    Summary const summary = summarise(samples);
    out.median = summary.median;
    out.mean = summary.mean;
    out.min = summary.min;
    out.p95 = summary.p95;
    out.max = summary.max;
    if (summary.ci95) {
      out.ci95 = *summary.ci95;
    } else {
      out.ci95 = Measured<Interval>::missing("a 95 % rank interval needs 6 samples, there are " + std::to_string(out.n));
    }
  }
  out.samples = std::move(samples);
  return out;
}

void write_result(Fields& f, Result const& result) {
  f.object("loop_seconds", result.loop_seconds, write_loop);
  f.object("step_seconds", result.step_seconds, write_steps);
  write_rate(f, "tokens_per_second", result.tokens_per_second, "token/s");
  write_rate(f, "tps", result.tps, "token/s/rank");
  f.object("flops_per_token", result.flops_per_token, [](Fields& g, FlopsPer const& flops) {
    g.put("torchtitan", flops.torchtitan);
    g.put("megatron", flops.megatron);
  });
  write_value(f, "mfu", result.mfu);
  write_value(f, "hfu", result.hfu);
  f.object("gemm_fraction", result.gemm_fraction, write_gemm);
  if (!result.matmul_paths.empty()) f.list("matmul_paths", result.matmul_paths, write_path);
  f.object("phases_seconds", result.phases_seconds, write_phases);
  f.list("comm", result.comm, write_comm);
  f.object("bubble_fraction", result.bubble_fraction, [](Fields& g, Bubble const& bubble) {
    g.put("value", bubble.value);
    g.put("predicted", bubble.predicted);
  });
  f.put("staleness_steps", result.staleness_steps);
  f.object("checkpoints", result.checkpoints, [](Fields& g, Checkpoints const& checkpoints) {
    g.put("saved", checkpoints.saved);
    g.put("bytes", checkpoints.bytes);
    g.put("seconds", checkpoints.seconds);
  });
  f.object("memory_bytes", result.memory_bytes, write_memory);
  f.object("loss", result.loss, write_loss);
  f.put("grad_norm_last", result.grad_norm_last);
  write_value(f, "energy_joules", result.energy_joules);
}

}  // namespace shardmark::record
