#pragma once
// One result with its provenance: what a line of `--json FILE` holds (schema shardmark.bench/1.0). Names and order are those of the JSON.
//
// std::optional: may not apply (null). Measured: applies, but may be unreadable (null, and the reason in `null_reasons` or beside it).

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "metrics/measured.hpp"
#include "metrics/statistics.hpp"
#include "record/reasons.hpp"

namespace shardmark::record {

inline constexpr char const* schema = "shardmark.bench/1.0";

struct Slurm {
  std::int64_t job_id = 0;
  std::optional<std::int64_t> array_task;
  std::int64_t restarts = 0;
  std::string partition, nodelist;
  Measured<bool> exclusive;
};

struct Run {
  std::string started;               // UTC, ISO 8601
  std::optional<std::string> ended;  // null while it runs
  State state = State::running;
  std::optional<int> exit_code;
  std::vector<std::string> argv;
  Measured<std::string> launcher;
  std::optional<std::int64_t> resumed_from_update;  // of an earlier launch, whose updates count in nothing else here
  std::optional<int> launch_index, launches_planned, round;
  std::optional<Slurm> slurm;
};

struct Data {
  std::string kind;
  std::optional<std::string> path;
  std::int64_t bytes = 0;
  std::optional<std::string> sha256;
};

struct Input {
  std::string strategy, model;
  std::int64_t layers = 0, hidden = 0;
  std::optional<std::int64_t> heads, seq, vocab;
  double dropout = 0;
  std::optional<bool> tied_embeddings;
  std::int64_t parameters = 0, parameters_embedding = 0;
  std::string dtype;
  bool tf32 = false;
  std::string backend, comm;
  bool deterministic = false;
  int ranks = 1, dp = 1, pp = 1, tp = 1;
  std::int64_t global_batch_size = 0, micro_batch_size = 0, num_microbatches = 1;
  double bucket_mib = 0;
  std::string recompute = "none", optimizer;
  double lr = 0;
  std::optional<double> clip_norm;
  double weight_decay = 0;
  std::uint64_t seed = 0;
  Data data;
  std::optional<std::string> emulated_link, injected_fault;
  std::string config_sha256;  // of all options, defaults included
};

struct ReducedTwin {
  std::string model, reference;
  std::int64_t steps = 0, checks = 0, bitwise = 0, bounded = 0;
  Measured<double> worst_ratio;
};

struct InSitu {
  std::string reference;
  std::int64_t steps = 0, tensors = 0;
  Measured<double> worst_ratio;
  std::string worst_tensor;
  Measured<std::string> replica_hash_after_last_step;  // equal, different
};

struct NegativeControl {
  std::string bitflip;
  bool detected = false;
  std::string named;
};

struct Verification {
  Measured<ReducedTwin> reduced;
  Measured<InSitu> in_situ;
  std::vector<std::string> differs_from_timed;
  Measured<NegativeControl> negative_control;
  Measured<double> seconds;
};

struct Method {
  std::string clock = "CLOCK_MONOTONIC";
  double clock_resolution_ns = 0;
  Measured<double> clock_skew_us_max;
  std::string sync = "barrier before the loop only";
  bool trace = false;
  std::int64_t warmup_steps = 0, timed_steps = 0;
  std::string stop = "number of steps";
  std::string ci = "rank (Le Boudec), 95 %";
  std::string step_time_over_ranks = "max";
  std::string throughput_from = "loop_seconds";
  Measured<double> lag1_autocorrelation, halves_ratio;
  int outliers_removed = 0;
};

/// Where a prediction comes from. trace_same_run never counts as one.
enum class Basis : std::uint8_t { formula, probe, trace_other_run, trace_same_run };
std::string_view name(Basis basis);

struct LoopSeconds {
  Measured<double> value;
  Measured<double> sum_of_step_max_over_loop;
};

struct StepSeconds {
  Measured<double> median;
  Measured<Interval> ci95;
  Measured<double> mean, min, p95, max;
  std::int64_t n = 0;
  Measured<double> predicted, ratio;
  std::optional<Basis> basis;
  std::vector<double> samples;
  std::vector<std::pair<int, std::int64_t>> slowest_rank_histogram;  // rank -> steps in which it was the slowest
};
/// Fills in all but prediction and histogram; `samples` are maxima over ranks, of the timed steps, none removed.
StepSeconds step_seconds(std::vector<double> samples);

struct GemmFraction {
  Measured<double> value;
  Measured<double> gemm_flops_per_second;
  std::string basis = "probe, same job";
};

/// Which way of making matrix products of one shape was the fastest, and what each came to.
struct MatmulPath {
  std::string shape;  // M x N x K, transposes, types
  std::string path;
  std::vector<std::pair<std::string, double>> flops_per_second;
};

struct PhasesSeconds {
  double data = 0, forward = 0, backward = 0, comm_exposed = 0, optimizer = 0, other = 0;
  std::string from_step = "separate traced run";
};

/// One kind of communication in a step, at the rank that sends the most.
struct Comm {
  std::string op, axis, implementation;
  std::int64_t calls_per_step = 0, calls_predicted = 0;
  std::int64_t size_bytes = 0;  // of the arrays, per step
  std::int64_t bus_bytes_per_rank = 0, bus_bytes_predicted = 0;
  Measured<double> busbw_GBps, busbw_probe_GBps, exposed_seconds, overlap_fraction, nic_over_formula;
};

struct Bubble {
  Measured<double> value, predicted;
};

struct Memory {
  std::string scope = "max over ranks";
  int rank = 0;  // that has the maximum
  std::int64_t parameters = 0, gradients = 0, optimizer = 0, activations = 0, weight_versions = 0, communication = 0, workspace = 0;
  std::int64_t ledger_peak = 0;
  Measured<std::int64_t> predicted;
  Measured<double> ratio;
  Measured<std::int64_t> pss_peak, device_used_peak, unaccounted;
  Measured<std::int64_t> allocations_after_warmup;
};

/// Time beside the timed loop.
struct Checkpoints {
  std::int64_t saved = 0, bytes = 0;  // bytes of one
  double seconds = 0;                 // of all
};

struct Loss {
  std::string unit = "nat/token";
  Measured<double> first, last;
  std::int64_t update = 0;  // of `last`, since the run began
  std::int64_t nonfinite_steps = 0;
};

struct FlopsPer {
  std::int64_t torchtitan = 0, megatron = 0;
};

struct Result {
  LoopSeconds loop_seconds;
  StepSeconds step_seconds;
  Measured<double> tokens_per_second, tps;  // of the job; per rank
  Measured<FlopsPer> flops_per_token;
  Measured<double> mfu, hfu;
  GemmFraction gemm_fraction;
  std::vector<MatmulPath> matmul_paths;  // empty: nothing was tried out, as in deterministic mode
  Measured<PhasesSeconds> phases_seconds;
  std::vector<Comm> comm;
  Bubble bubble_fraction;
  std::int64_t staleness_steps = 0;
  std::optional<Checkpoints> checkpoints;  // null: none were saved
  Memory memory_bytes;
  Loss loss;
  Measured<double> grad_norm_last;
  Measured<double> energy_joules;
};

struct Rank {
  int rank = 0;
  std::string host;
  int local_rank = 0;
  std::string cpus;
  Measured<int> numa;
  Measured<std::string> accelerator;
  Measured<std::string> nic;
  Measured<double> step_median, gemm_gflops, mhz, steal_pct;
  Measured<std::int64_t> page_faults_major, ctx_switches_involuntary;
};

struct Interconnect {
  Measured<std::string> device;
  Measured<double> link_gbit_s;
  Measured<std::string> transport_used;
};

struct Preflight {
  int ok = 0, warn = 0, fail = 0;
};

struct System {
  int nodes = 1;
  Measured<int> distinct_boot_ids;
  int ranks_per_core = 1, threads_per_rank = 1;
  Measured<bool> virtualised;
  std::optional<double> cgroup_cpu_quota;
  Measured<std::string> cpu;
  int cores_per_node = 0;
  bool smt = false;
  Measured<std::string> governor, thp;
  std::string kernel;
  Interconnect interconnect;
  Measured<bool> homogeneous;
  Measured<Preflight> preflight;
};

struct Mpi {
  std::string library, headers;
};

struct Software {
  std::optional<Mpi> mpi;
  std::optional<std::string> cuda, driver, nccl, cudnn;
  std::optional<std::string> onednn;
  std::string isa_used;
};

struct Build {
  std::string version;
  std::string source;  // git, unknown
  std::optional<std::string> commit;
  std::optional<bool> dirty;
  Measured<std::string> binary_sha256;
  Measured<bool> same_binary_on_all_nodes;
  std::string type, compiler, flags;
};

/// What of the environment changes results.
struct Environment {
  std::vector<std::pair<std::string, std::string>> variables;
  std::vector<std::string> modules;
};

struct SideFile {
  std::string path, sha256;
};

struct Files {
  std::optional<SideFile> per_rank_samples;
  std::optional<std::string> trace, stdout_log;
};

struct Record {
  std::string record_id;
  Run run;
  Input input;
  Verdict verdict = Verdict::unverified;
  Verification verification;
  std::vector<Unofficial> unofficial;
  Method method;
  Measured<Result> result;
  std::vector<Rank> ranks;
  System system;
  Software software;
  Build build;
  Environment environment;
  Files files;

  /// Proven, finished, and nothing speaks against it.
  bool official() const { return verdict == Verdict::verified && run.state == State::completed && unofficial.empty(); }
};

/// The record as one line of JSON without a line end: stable order of names, valid UTF-8, no NaN.
std::string to_json_line(Record const& record);
/// The same, indented for people.
std::string to_json(Record const& record);

/// The main numbers as a line of comma-separated values (RFC 4180); an empty cell is null.
std::string csv_header();
std::string to_csv_line(Record const& record);

}  // namespace shardmark::record
