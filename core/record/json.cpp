#include "record/json_fields.hpp"
#include "record/record.hpp"

namespace shardmark::record {
namespace {

void write_slurm(Fields& f, Slurm const& slurm) {
  f.put("job_id", slurm.job_id);
  f.put("array_task", slurm.array_task);
  f.put("restarts", slurm.restarts);
  f.put("partition", slurm.partition);
  f.put("nodelist", slurm.nodelist);
  f.put("exclusive", slurm.exclusive);
}

void write_run(Fields& f, Run const& run) {
  f.put("started", run.started);
  f.put("ended", run.ended);
  f.put("state", name(run.state));
  f.put("exit_code", run.exit_code);
  f.put("argv", run.argv);
  f.put("launcher", run.launcher);
  f.put("resumed_from_update", run.resumed_from_update);
  f.put("launch_index", run.launch_index);
  f.put("launches_planned", run.launches_planned);
  f.put("round", run.round);
  f.object("slurm", run.slurm, write_slurm);
}

void write_data(Fields& f, Data const& data) {
  f.put("kind", data.kind);
  f.put("path", data.path);
  f.put("bytes", data.bytes);
  f.put("sha256", data.sha256);
}

void write_input(Fields& f, Input const& input) {
  f.put("strategy", input.strategy);
  f.put("model", input.model);
  f.put("layers", input.layers);
  f.put("hidden", input.hidden);
  f.put("heads", input.heads);
  f.put("seq", input.seq);
  f.put("vocab", input.vocab);
  f.put("dropout", input.dropout);
  f.put("tied_embeddings", input.tied_embeddings);
  f.put("parameters", input.parameters);
  f.put("parameters_embedding", input.parameters_embedding);
  f.put("dtype", input.dtype);
  f.put("tf32", input.tf32);
  f.put("backend", input.backend);
  f.put("comm", input.comm);
  f.put("deterministic", input.deterministic);
  f.put("ranks", input.ranks);
  f.put("dp", input.dp);
  f.put("pp", input.pp);
  f.put("tp", input.tp);
  f.put("global_batch_size", input.global_batch_size);
  f.put("micro_batch_size", input.micro_batch_size);
  f.put("num_microbatches", input.num_microbatches);
  f.put("bucket_mib", input.bucket_mib);
  f.put("recompute", input.recompute);
  f.put("optimizer", input.optimizer);
  f.put("lr", input.lr);
  f.put("clip_norm", input.clip_norm);
  f.put("weight_decay", input.weight_decay);
  f.put("seed", input.seed);
  f.object("data", input.data, write_data);
  f.put("emulated_link", input.emulated_link);
  f.put("injected_fault", input.injected_fault);
  f.put("config_sha256", input.config_sha256);
}

void write_reduced(Fields& f, ReducedTwin const& twin) {
  f.put("model", twin.model);
  f.put("reference", twin.reference);
  f.put("steps", twin.steps);
  f.put("checks", twin.checks);
  f.put("bitwise", twin.bitwise);
  f.put("bounded", twin.bounded);
  f.put("worst_ratio", twin.worst_ratio);
}

void write_in_situ(Fields& f, InSitu const& in_situ) {
  f.put("reference", in_situ.reference);
  f.put("steps", in_situ.steps);
  f.put("tensors", in_situ.tensors);
  f.put("worst_ratio", in_situ.worst_ratio);
  f.put("worst_tensor", in_situ.worst_tensor);
  f.put("replica_hash_after_last_step", in_situ.replica_hash_after_last_step);
}

void write_negative_control(Fields& f, NegativeControl const& control) {
  f.put("bitflip", control.bitflip);
  f.put("detected", control.detected);
  f.put("named", control.named);
}

void write_verification(Fields& f, Verification const& verification) {
  f.object("reduced", verification.reduced, write_reduced);
  f.object("in_situ", verification.in_situ, write_in_situ);
  f.put("differs_from_timed", verification.differs_from_timed);
  f.object("negative_control", verification.negative_control, write_negative_control);
  f.put("seconds", verification.seconds);
}

void write_unofficial(Fields& f, Unofficial const& unofficial) {
  f.put("code", code(unofficial.reason));
  f.put("detail", unofficial.detail);
}

void write_method(Fields& f, Method const& method) {
  f.put("clock", method.clock);
  f.put("clock_resolution_ns", method.clock_resolution_ns);
  f.put("clock_skew_us_max", method.clock_skew_us_max);
  f.put("sync", method.sync);
  f.put("trace", method.trace);
  f.put("warmup_steps", method.warmup_steps);
  f.put("timed_steps", method.timed_steps);
  f.put("stop", method.stop);
  f.put("ci", method.ci);
  f.put("step_time_over_ranks", method.step_time_over_ranks);
  f.put("throughput_from", method.throughput_from);
  f.put("lag1_autocorrelation", method.lag1_autocorrelation);
  f.put("halves_ratio", method.halves_ratio);
  f.put("outliers_removed", method.outliers_removed);
}

void write_rank(Fields& f, Rank const& rank) {
  f.put("rank", rank.rank);
  f.put("host", rank.host);
  f.put("local_rank", rank.local_rank);
  f.put("cpus", rank.cpus);
  f.put("numa", rank.numa);
  f.put("accelerator", rank.accelerator);
  f.put("nic", rank.nic);
  f.put("step_median", rank.step_median);
  f.put("gemm_gflops", rank.gemm_gflops);
  f.put("mhz", rank.mhz);
  f.put("steal_pct", rank.steal_pct);
  f.put("page_faults_major", rank.page_faults_major);
  f.put("ctx_switches_involuntary", rank.ctx_switches_involuntary);
}

void write_system(Fields& f, System const& system) {
  f.put("nodes", system.nodes);
  f.put("distinct_boot_ids", system.distinct_boot_ids);
  f.put("ranks_per_core", system.ranks_per_core);
  f.put("threads_per_rank", system.threads_per_rank);
  f.put("virtualised", system.virtualised);
  f.put("cgroup_cpu_quota", system.cgroup_cpu_quota);
  f.put("cpu", system.cpu);
  f.put("cores_per_node", system.cores_per_node);
  f.put("smt", system.smt);
  f.put("governor", system.governor);
  f.put("thp", system.thp);
  f.put("kernel", system.kernel);
  f.object("interconnect", system.interconnect, [](Fields& g, Interconnect const& interconnect) {
    g.put("device", interconnect.device);
    g.put("link_gbit_s", interconnect.link_gbit_s);
    g.put("transport_used", interconnect.transport_used);
  });
  f.put("homogeneous", system.homogeneous);
  f.object("preflight", system.preflight, [](Fields& g, Preflight const& preflight) {
    g.put("ok", preflight.ok);
    g.put("warn", preflight.warn);
    g.put("fail", preflight.fail);
  });
}

void write_software(Fields& f, Software const& software) {
  f.object("mpi", software.mpi, [](Fields& g, Mpi const& mpi) {
    g.put("library", mpi.library);
    g.put("headers", mpi.headers);
  });
  f.put("cuda", software.cuda);
  f.put("driver", software.driver);
  f.put("nccl", software.nccl);
  f.put("cudnn", software.cudnn);
  f.put("onednn", software.onednn);
  f.put("isa_used", software.isa_used);
}

void write_build(Fields& f, Build const& build) {
  f.put("version", build.version);
  f.put("source", build.source);
  f.put("commit", build.commit);
  f.put("dirty", build.dirty);
  f.put("binary_sha256", build.binary_sha256);
  f.put("same_binary_on_all_nodes", build.same_binary_on_all_nodes);
  f.put("type", build.type);
  f.put("compiler", build.compiler);
  f.put("flags", build.flags);
}

void write_environment(Fields& f, Environment const& environment) {
  for (auto const& [variable, value] : environment.variables) f.put(variable.c_str(), value);
  f.put("modules", environment.modules);
}

void write_files(Fields& f, Files const& files) {
  f.object("per_rank_samples", files.per_rank_samples, [](Fields& g, SideFile const& file) {
    g.put("path", file.path);
    g.put("sha256", file.sha256);
  });
  f.put("trace", files.trace);
  f.put("stdout", files.stdout_log);
}

Json to_tree(Record const& record) {
  Json json, reasons = Json::object();
  Fields f(json, reasons);
  f.put("schema", schema);
  f.put("record_id", record.record_id);
  f.object("run", record.run, write_run);
  f.object("input", record.input, write_input);
  f.put("verdict", name(record.verdict));
  f.object("verification", record.verification, write_verification);
  f.put("official", record.official());
  f.list("unofficial", record.unofficial, write_unofficial);
  f.object("method", record.method, write_method);
  f.object("result", record.result, write_result);
  f.list("ranks", record.ranks, write_rank);
  f.object("system", record.system, write_system);
  f.object("software", record.software, write_software);
  f.object("build", record.build, write_build);
  f.object("environment", record.environment, write_environment);
  f.object("files", record.files, write_files);
  if (!reasons.empty()) json["null_reasons"] = std::move(reasons);
  return json;
}

}  // namespace

std::string to_json_line(Record const& record) { return to_tree(record).dump(); }
std::string to_json(Record const& record) { return to_tree(record).dump(1); }

}  // namespace shardmark::record
