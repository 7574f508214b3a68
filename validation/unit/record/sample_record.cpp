#include "sample_record.hpp"

namespace shardmark::test {
namespace {

using namespace record;

Input sample_input() {
  return {.strategy = "ddp",
          .model = "gpt",
          .layers = 4,
          .hidden = 512,
          .heads = 8,
          .seq = 256,
          .vocab = 8192,
          .dropout = 0,
          .tied_embeddings = false,
          .parameters = 21130240,
          .parameters_embedding = 4325376,
          .dtype = "fp32",
          .tf32 = false,
          .backend = "cpu",
          .comm = "mpi",
          .deterministic = false,
          .ranks = 4,
          .dp = 4,
          .pp = 1,
          .tp = 1,
          .global_batch_size = 16,
          .micro_batch_size = 4,
          .num_microbatches = 1,
          .bucket_mib = 25,
          .recompute = "none",
          .optimizer = "adamw",
          .lr = 0.0003,
          .clip_norm = std::nullopt,
          .weight_decay = 0.1,
          .seed = 1234,
          .data = {.kind = "tokens", .path = "corpus.bin", .bytes = 31457280, .sha256 = "9b1f..."},
          .emulated_link = std::nullopt,
          .injected_fault = std::nullopt,
          .config_sha256 = "c41d..."};
}

Verification sample_verification() {
  return {.reduced = ReducedTwin{.model = "gpt L2 H48 a3 S17 V61",
                                 .reference = "serial/reference fp64",
                                 .steps = 20,
                                 .checks = 412,
                                 .bitwise = 388,
                                 .bounded = 24,
                                 .worst_ratio = 0.21},
          .in_situ = InSitu{.reference = "serial/cpu fp64",
                            .steps = 1,
                            .tensors = 69,
                            .worst_ratio = 0.17,
                            .worst_tensor = "h.3.mlp.fc.weight",
                            .replica_hash_after_last_step = std::string("equal")},
          .differs_from_timed = {},
          .negative_control =
              NegativeControl{.bitflip = "rank 3, h.2.mlp.fc.weight[0], before reduction", .detected = true, .named = "h.2.mlp.fc.weight"},
          .seconds = 41.8};
}

Method sample_method() {
  Method method;
  method.clock_resolution_ns = 21;
  method.clock_skew_us_max = 3.1;
  method.warmup_steps = 5;
  method.timed_steps = 30;
  method.stop = "ci95 half-width <= 1 %";
  method.lag1_autocorrelation = 0.08;
  method.halves_ratio = 1.001;
  return method;
}

StepSeconds sample_steps() {
  StepSeconds steps;
  steps.median = 1.1271;
  steps.ci95 = Interval{1.1264, 1.1296};
  steps.mean = 1.1311;
  steps.min = 1.1243;
  steps.p95 = 1.1345;
  steps.max = 1.2151;
  steps.n = 30;
  steps.predicted = 1.108;
  steps.ratio = 1.017;
  steps.basis = Basis::probe;
  steps.samples = {1.2151, 1.1343};
  steps.slowest_rank_histogram = {{0, 4}, {1, 6}, {2, 5}, {3, 15}};
  return steps;
}

Memory sample_memory() {
  Memory memory;
  memory.parameters = 84520960;
  memory.gradients = 84520960;
  memory.optimizer = 169041920;
  memory.activations = 201326592;
  memory.communication = 27262976;
  memory.workspace = 8388608;
  memory.ledger_peak = 575062016;
  memory.predicted = 573177856;
  memory.ratio = 1.003;
  memory.pss_peak = 611450880;
  memory.device_used_peak = Measured<std::int64_t>::missing("no device");
  memory.unaccounted = 36388864;
  memory.allocations_after_warmup = 0;
  return memory;
}

Comm sample_comm() {
  return {.op = "all_reduce",
          .axis = "dp",
          .implementation = "Open MPI coll/tuned",
          .calls_per_step = 6,
          .calls_predicted = 6,
          .size_bytes = 84520960,
          .bus_bytes_per_rank = 126781440,
          .bus_bytes_predicted = 126781440,
          .busbw_GBps = 2.072,
          .busbw_probe_GBps = 2.41,
          .exposed_seconds = 0.0058,
          .overlap_fraction = 0.905,
          .nic_over_formula = 1.035};
}

Result sample_result() {
  Result result;
  result.loop_seconds = {.value = 33.9542, .sum_of_step_max_over_loop = 0.9994};
  result.step_seconds = sample_steps();
  result.tokens_per_second = 3619.0;
  result.tps = 904.7;
  result.flops_per_token = FlopsPer{.torchtitan = 107120640, .megatron = 103809024};
  result.mfu = result.hfu = Measured<double>::missing("no vendor peak for this device");
  result.gemm_fraction.value = 0.903;
  result.gemm_fraction.gemm_flops_per_second = 107300000000.0;
  result.phases_seconds =
      PhasesSeconds{.data = 0.0004, .forward = 0.361, .backward = 0.728, .comm_exposed = 0.0058, .optimizer = 0.031, .other = 0.0009};
  result.comm = {sample_comm()};
  result.bubble_fraction = {.value = 0.0, .predicted = 0.0};
  result.checkpoints = Checkpoints{.saved = 2, .bytes = 253563904, .seconds = 1.25};
  result.memory_bytes = sample_memory();
  result.loss.first = 9.0127;
  result.loss.last = 7.331;
  result.loss.update = 35;
  result.grad_norm_last = 1.274;
  result.energy_joules = Measured<double>::missing("RAPL not readable by this user");
  return result;
}

Rank sample_rank() {
  Rank rank;
  rank.host = "n014";
  rank.cpus = "0-0";
  rank.numa = 0;
  rank.accelerator = Measured<std::string>::missing("no device");
  rank.nic = std::string("eth0");
  rank.step_median = 1.1262;
  rank.gemm_gflops = 107.9;
  rank.mhz = 3650.0;
  rank.steal_pct = 0.0;
  rank.page_faults_major = 0;
  rank.ctx_switches_involuntary = 41;
  return rank;
}

System sample_system() {
  System system;
  system.nodes = 2;
  system.distinct_boot_ids = 2;
  system.virtualised = false;
  system.cpu = std::string("AMD EPYC 9354");
  system.cores_per_node = 32;
  system.governor = std::string("performance");
  system.thp = std::string("madvise");
  system.kernel = "6.1.0-28";
  system.interconnect = {.device = std::string("eth0"), .link_gbit_s = 25.0, .transport_used = std::string("tcp")};
  system.homogeneous = true;
  system.preflight = Preflight{.ok = 21, .warn = 1, .fail = 0};
  return system;
}

}  // namespace

Record sample_record() {
  Record out;
  out.record_id = "2f0c6c1e-5d0e-4f0b-9a55-0c7d6f1b8a11";
  out.run = {
      .started = "2026-12-04T09:31:07Z",
      .ended = "2026-12-04T09:33:02Z",
      .state = State::completed,
      .exit_code = 0,
      .argv = {"ddp", "bench", "..."},
      .launcher = std::string("srun --mpi=pmix -N2 -n4 --cpu-bind=cores"),
      .resumed_from_update = 500,
      .launch_index = 3,
      .launches_planned = 5,
      .round = std::nullopt,
      .slurm = Slurm{.job_id = 48211, .array_task = 3, .restarts = 0, .partition = "batch", .nodelist = "n[014-015]", .exclusive = true}};
  out.input = sample_input();
  out.verdict = Verdict::verified;
  out.verification = sample_verification();
  out.unofficial = {{Reason::launch_set_incomplete, "3 of 5 launches"}};
  out.method = sample_method();
  out.result = sample_result();
  out.ranks = {sample_rank()};
  out.system = sample_system();
  out.software = {.mpi = Mpi{.library = "Open MPI v4.1.4", .headers = "4.1.4"},
                  .cuda = std::nullopt,
                  .driver = std::nullopt,
                  .nccl = std::nullopt,
                  .cudnn = std::nullopt,
                  .onednn = "2.6.3",
                  .isa_used = "avx512_core_bf16"};
  out.build = {.version = "0.4.0",
               .source = "git",
               .commit = "5f2e9c1",
               .dirty = false,
               .binary_sha256 = std::string("77ab..."),
               .same_binary_on_all_nodes = true,
               .type = "release",
               .compiler = "g++ 12.2.0",
               .flags = "-O3 -ffp-contract=off"};
  out.environment = {.variables = {{"OMP_NUM_THREADS", "1"}}, .modules = {}};
  out.files = {.per_rank_samples = SideFile{.path = "steps.f32", .sha256 = "e0c2..."}, .trace = std::nullopt, .stdout_log = "log.txt"};
  return out;
}

}  // namespace shardmark::test
