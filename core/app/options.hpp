#pragma once
// What a user can ask for: the same meaning in every program (`--help` of any program is the table). A plain struct; option_table.cpp says
// how each option is spelt, options.cpp reads the command line (CLI11), config.cpp reads and writes JSON.

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.hpp"
#include "base/types.hpp"
#include "run/settings.hpp"
#include "schedule/planners.hpp"

namespace shardmark {

enum class Command : std::uint8_t { plan, verify, bench };
enum class ModelKind : std::uint8_t { mlp, convnet, gpt };
enum class OptimizerKind : std::uint8_t { sgd, adamw };
enum class BackendKind : std::uint8_t { reference, cpu, cuda };
enum class CommKind : std::uint8_t { mpi, peer, nccl };
enum class LrSchedule : std::uint8_t { constant, linear, cosine };
/// What pipedream does at the end of a batch: it drains (flush), or goes on with the weights that a Delay says.
enum class PipelineMode : std::uint8_t { flush, stash, vertical, two_buffers };
/// What tensor_parallel cuts: pairs of layers, or one of the mlp's alone.
enum class LayerAlone : std::uint8_t { off, column, row };
enum class SplitBackward : std::uint8_t { off, h1, h2, v };
/// As written on the command line and in records.
std::string_view name(Command command);
std::string_view name(ModelKind model);
std::string_view name(OptimizerKind optimizer);
std::string_view name(BackendKind backend);
std::string_view name(CommKind comm);
std::string_view name(LrSchedule schedule);
std::string_view name(BatchNormPolicy policy);
std::string_view name(PipelineMode mode);
std::string_view name(SplitBackward split);
std::string_view name(LayerAlone layer);
std::string_view name(BackwardOrder order);

struct Fault {  // --inject KIND:key=value,...
  enum class Kind : std::uint8_t { bitflip, nan, kill, stop, delay, drop_reduction };
  Kind kind{};
  int rank = 0;
  std::int64_t step = 1;  // 1-based, counted over warm-up and timed steps
  std::string tensor;     // parameter name; empty: the first
  double seconds = 1;     // delay
};

struct Options {
  Command command = Command::verify;
  std::string program;  // serial, ddp, ...

  ModelKind model = ModelKind::gpt;
  std::int64_t layers = 4, hidden = 256, heads = 4, seq = 128, vocab = 256;
  std::int64_t features = 64;  // numbers of a synthetic sample of the mlp
  double dropout = 0;
  bool tied_embeddings = false;
  BatchNormPolicy batch_norm = BatchNormPolicy::per_micro;

  std::string data;  // synthetic | text:PATH; empty: the command's default
  double held_out = 0.1;
  bool evaluate = false;  // --eval

  std::int64_t batch = 8;             // global batch, samples
  bool batch_is_per_replica = false;  // --batch-per-replica
  int micros = 1;                     // --microbatches, --accumulate
  bool micros_given = false;
  std::int64_t steps = 20, warmup = 0;
  int rounds = 3;  // of shardmark compare

  OptimizerKind optimizer = OptimizerKind::sgd;
  double lr = 3e-4;  // 3e-4 with adamw, 0.1 with sgd, unless given
  double momentum = 0, clip_norm = 0, weight_decay = 0;
  bool nesterov = false;
  LrSchedule lr_schedule = LrSchedule::constant;
  std::uint64_t seed = 1;

  DType dtype = DType::f32;
  BackendKind backend = BackendKind::cpu;
  CommKind comm = CommKind::mpi;
  bool comm_given = false;
  bool deterministic = false;
  PipelineMode mode = PipelineMode::flush;
  int virtual_stages = 1;
  SplitBackward split_backward = SplitBackward::off;
  BackwardOrder backward_order = BackwardOrder::newest_first;
  std::string balance = "auto";  // or blocks of each chunk: 2,2,4
  std::string split_points;      // instead: names of the blocks with which chunks begin
  std::string recompute = "none";
  std::shared_ptr<std::vector<double> const>
      forward_seconds;                      // of each block, measured, for --recompute budget; absent: flops stand for them
  std::string schedule_file;                // --schedule; empty: the strategy's own
  std::shared_ptr<Schedule const> written;  // what that file holds, read once

  bool sequence_parallel = false;  // --sequence-parallel
  int tp_chunks = 1;               // --tp-chunks
  LayerAlone layer = LayerAlone::off;
  bool gather_output = false, scatter_input = false;  // of that layer

  int stage = 1;                         // of ZeRO
  Inside reduce_order = Inside::micros;  // --reduce-order: what a sum of gradients adds up first

  double bucket_mib = 25;
  bool overlap = true;  // --no-overlap

  std::string save, resume;     // folders of checkpoints; empty: none
  std::int64_t save_every = 0;  // updates; 0: at the end alone

  double timeout_seconds = 300;
  std::optional<Fault> inject;
  bool verify_in_bench = true;  // --no-verify
  bool dry_run = false;

  int ranks = 0;             // plan --ranks; 0: those that run
  int ranks_as_threads = 0;  // run R thread ranks without MPI

  std::string out;                    // run folder; of plan: the schedule's text
  std::string json, csv, trace, svg;  // json: "-" is stdout (--json without a file)
  bool compare = false;               // plan: all pipelines in one table
  std::vector<std::string> extra;     // Usage::extra of the program
  std::vector<std::string> argv;

  bool offers(std::string_view option) const { return std::find(extra.begin(), extra.end(), option) != extra.end(); }
};

struct ParseResult {
  std::optional<Options> options;  // absent: `text` was asked for (--help, --version) and is to be printed
  std::string text;
};

/// What one program offers. Options mean the same in every program; some make no sense in some.
struct Usage {
  std::string program = {};  // "ddp", "shardmark compare"
  std::string summary = {};  // one line for --help; may be empty
  /// The first word is plan, verify or bench. no: `command` holds, and the first word is an option already.
  enum class Commands : std::uint8_t { no, yes } commands = Commands::yes;
  Command command = Command::bench;
  std::int64_t bench_steps = 20, bench_warmup = 3;
  std::vector<std::string> left_out = {};  // options (without dashes) that this program doesn't offer
  std::vector<std::string> extra = {};     // options of some programs alone (Audience::some) that this one offers
  int micros = 1;                          // default of --microbatches
  std::string recompute = "none";          // default of --recompute
};

/// Parses the command line, then --config FILE under it (the command line wins; an unknown key or option names the nearest one), fills in
/// the command's and the model's defaults, and refuses what can't work for any number of ranks. argv[0] is the program.
/// @throws BadRequest
ParseResult parse_options(Usage const& usage, int argc, char const* const* argv);
ParseResult parse_options(std::string const& program, int argc, char const* const* argv);

/// Refuses what depends on the number of data-parallel replicas: more micro-batches than the largest replica has samples.
/// @throws BadRequest
void require_fit(Options const& options, int replicas);

/// Samples of one update over all replicas.
std::int64_t global_batch(Options const& options, int replicas);

/// Every option with its value, for --dry-run and records; options that don't apply are null. JSON text, stable key order; it is a
/// valid --config that gives the same options.
std::string describe_json(Options const& options);

}  // namespace shardmark
