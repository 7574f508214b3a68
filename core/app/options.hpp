#pragma once
// What a user can ask for: the same meaning in every program (docs: README, options table). A plain struct; parsing is in options.cpp,
// the only file (with config.cpp) that includes CLI11 and JSON.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/error.hpp"
#include "base/types.hpp"

namespace shardmark {

enum class Command : std::uint8_t { plan, verify, bench };
enum class ModelKind : std::uint8_t { mlp, gpt };
enum class OptimizerKind : std::uint8_t { sgd, adamw };
enum class BackendKind : std::uint8_t { reference, cpu, cuda };
enum class CommKind : std::uint8_t { mpi, peer, nccl };
enum class LrSchedule : std::uint8_t { constant, linear, cosine };

struct Fault {  // --inject KIND:key=value,...
  enum class Kind : std::uint8_t { bitflip, nan, kill, stop, delay, drop_reduction };
  Kind kind{};
  int rank = 0;
  std::int64_t step = 1;   // 1-based, counted over warm-up and timed steps
  std::string tensor;      // parameter name; empty: the first
  double seconds = 1;      // delay
};

struct Options {
  Command command = Command::verify;
  std::string program;  // serial, ddp, ...

  ModelKind model = ModelKind::gpt;
  std::int64_t layers = 4, hidden = 256, heads = 4, seq = 128, vocab = 256;
  double dropout = 0;
  bool tied_embeddings = false;

  std::string data;  // synthetic | text:PATH; empty: the command's default
  double held_out = 0.1;
  bool evaluate = false;  // --eval

  std::int64_t batch = 8;             // global batch, samples
  bool batch_is_per_replica = false;  // --batch-per-replica
  int micros = 1;                     // --microbatches, --accumulate
  std::int64_t steps = 20, warmup = 0;

  OptimizerKind optimizer = OptimizerKind::sgd;
  double lr = 3e-4, momentum = 0, clip_norm = 0, weight_decay = 0;
  bool nesterov = false;
  LrSchedule lr_schedule = LrSchedule::constant;
  std::uint64_t seed = 1;

  DType dtype = DType::f32;
  BackendKind backend = BackendKind::cpu;
  CommKind comm = CommKind::mpi;
  bool comm_given = false;
  bool deterministic = false;
  bool replicas_first = false;  // --reduce-order ranks-first
  int threads_per_rank = 1;
  double bucket_mib = 25;
  bool overlap = true;          // --no-overlap

  double timeout_seconds = 300;
  std::optional<Fault> inject;
  bool verify_in_bench = true;  // --no-verify
  bool dry_run = false;

  int ranks = 0;              // plan --ranks; 0: those that run
  int ranks_as_threads = 0;   // run R thread ranks without MPI
  std::string mutant;         // test builds only

  std::string out, json, csv, trace;
  std::vector<std::string> argv;
};

struct ParseResult {
  std::optional<Options> options;  // absent: `text` was asked for (--help, --version) and is to be printed
  std::string text;
};
/// Parses the command line, then --config FILE under it (the command line wins; an unknown key or option names the nearest one), fills in the command's defaults.
/// @throws BadRequest
ParseResult parse_options(std::string const& program, int argc, char const* const* argv);

/// Every option with its value, for --dry-run and records. JSON text, stable key order.
std::string describe_json(Options const& options);

}  // namespace shardmark
