#include "app/option_table.hpp"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>

#include "app/choices.hpp"
#include "app/data_request.hpp"
#include "app/nearest.hpp"
#include "model/tensor_part.hpp"

namespace shardmark {
namespace {

// ---- what entries are made of: each helper makes the two functions that bind an option to a field of Options

struct Binding {
  Takes takes;
  std::function<void(Options&, OptionValue const&, std::string const&)> assign;
  std::function<OptionValue(Options const&)> read;
};

template <class Field>
struct Bounds {
  Field lowest, highest;
  enum class Lowest { included, excluded } at_lowest = Lowest::included;
};
using enum Bounds<double>::Lowest;

template <class Field>
void require_in(Bounds<Field> bounds, Field value, std::string const& origin) {
  bool const excluded = bounds.at_lowest == Bounds<Field>::Lowest::excluded;
  if (excluded ? value <= bounds.lowest : value < bounds.lowest)
    fail_input(
        {fmt::format("{} {} is too small", origin, value), fmt::format("{} {}", excluded ? "above" : "at least", bounds.lowest), ""});
  if (value > bounds.highest) fail_input({fmt::format("{} {} is too large", origin, value), fmt::format("at most {}", bounds.highest), ""});
}

/// Integers; Field may be any integer type of Options.
template <class Field>
Binding whole(Field Options::*field, std::int64_t lowest, std::int64_t highest) {
  return {Takes::whole_number,
          [=](Options& options, OptionValue const& value, std::string const& origin) {
            auto const number = std::get<std::int64_t>(value);
            require_in(Bounds<std::int64_t>{lowest, highest}, number, origin);
            options.*field = Field(number);
          },
          [=](Options const& options) { return OptionValue(std::int64_t(options.*field)); }};
}

Binding real(double Options::*field, Bounds<double> bounds) {
  return {Takes::number,
          [=](Options& options, OptionValue const& value, std::string const& origin) {
            auto const number = std::get<double>(value);
            require_in(bounds, number, origin);
            options.*field = number;
          },
          [=](Options const& options) { return OptionValue(options.*field); }};
}

Binding flag(bool Options::*field) {
  return {Takes::nothing, [=](Options& options, OptionValue const& value, std::string const&) { options.*field = std::get<bool>(value); },
          [=](Options const& options) { return OptionValue(options.*field); }};
}

template <class Enum>
Binding choice(Enum Options::*field) {
  return {Takes::text,
          [=](Options& options, OptionValue const& value, std::string const& origin) {
            options.*field = choose<Enum>(std::get<std::string>(value), origin);
          },
          [=](Options const& options) { return OptionValue(std::string(word_of(options.*field))); }};
}

Binding words(std::string Options::*field) {
  return {Takes::text,
          [=](Options& options, OptionValue const& value, std::string const& origin) {
            auto const& text = std::get<std::string>(value);
            require_input(!text.empty(), {origin + " is empty", "", "leave it out, or give it a value"});
            require_input(text.find('\0') == std::string::npos, {origin + " holds a zero byte", "no path has one", ""});
            options.*field = text;
          },
          [=](Options const& options) { return (options.*field).empty() ? OptionValue() : OptionValue(options.*field); }};
}

/// Reads as absent in programs that don't offer it.
Binding offered(char const* name, Binding binding) {
  return {binding.takes, binding.assign,
          [name, read = binding.read](Options const& options) { return options.offers(name) ? read(options) : OptionValue(); }};
}

/// Reads as absent unless `applies`.
Binding when(bool (*applies)(Options const&), Binding binding) {
  return {binding.takes, binding.assign,
          [applies, read = binding.read](Options const& options) { return applies(options) ? read(options) : OptionValue(); }};
}

/// Never described: another option has its value.
Binding unread(Binding binding) {
  return {binding.takes, binding.assign, [](Options const&) { return OptionValue(); }};
}

// ---- bindings of options that are more than one field

Binding per_replica_batch() {
  return when(
      [](Options const& options) { return options.batch_is_per_replica; },
      {Takes::whole_number,
       [assign = whole(&Options::batch, 1, limits::batch).assign](Options& options, OptionValue const& value, std::string const& origin) {
         assign(options, value, origin);
         options.batch_is_per_replica = true;
       },
       whole(&Options::batch, 1, limits::batch).read});
}

Binding micro_batches() {
  return {
      Takes::whole_number,
      [assign = whole(&Options::micros, 1, limits::micros).assign](Options& options, OptionValue const& value, std::string const& origin) {
        assign(options, value, origin);
        options.micros_given = true;
      },
      whole(&Options::micros, 1, limits::micros).read};
}

Binding communicator() {
  return {Takes::text,
          [](Options& options, OptionValue const& value, std::string const& origin) {
            options.comm = choose<CommKind>(std::get<std::string>(value), origin);
            options.comm_given = true;
          },
          choice(&Options::comm).read};
}

Binding injected_fault() {
  return {Takes::text,
          [](Options& options, OptionValue const& value, std::string const& origin) {
            options.inject = parse_fault(std::get<std::string>(value), origin);
          },
          [](Options const& options) { return options.inject ? OptionValue(to_string(*options.inject)) : OptionValue(); }};
}

Binding json_file() {
  Binding binding = words(&Options::json);
  binding.takes = Takes::optional_text;
  return binding;
}

/// strategies/checkpointing/README.md says where the numbers come from.
void set_seed_checkpoint(Options& options) {
  options.model = ModelKind::mlp;
  options.layers = 17;
  options.hidden = 2048;
  options.features = 784;
  options.batch = 256;
}

Binding preset() {
  return unread({Takes::text,
                 [](Options& options, OptionValue const& value, std::string const& origin) {
                   auto const& word = std::get<std::string>(value);
                   if (word == "seed-checkpoint") return set_seed_checkpoint(options);
                   if (word != "seed") refuse_choice(word, false, "seed, seed-checkpoint", origin);
                   options.model = ModelKind::gpt;
                   options.layers = 8;
                   options.hidden = 512;
                   options.heads = 8;
                   options.vocab = 10000;
                 },
                 {}});
}

bool is_gpt(Options const& options) { return options.model == ModelKind::gpt; }
bool is_convnet(Options const& options) { return options.model == ModelKind::convnet; }
bool takes_features(Options const& options) {
  return options.model == ModelKind::mlp && parse_data(options.data, "--data").kind == DataKind::synthetic;
}
bool has_share(Options const& options) { return is_cut_by_share(parse_data(options.data, "--data").kind); }
bool is_sgd(Options const& options) { return options.optimizer == OptimizerKind::sgd; }

constexpr double inf = std::numeric_limits<double>::max();
constexpr double below_one = 0x1.fffffffffffffp-1;
constexpr CommandSet plan_alone = in(Command::plan), bench_alone = in(Command::bench), plan_or_bench = plan_alone | bench_alone;
constexpr CommandSet work = in(Command::verify) | in(Command::bench);

std::vector<OptionEntry> make_table() {
  std::vector<OptionEntry> table;
  char const* group = "";
  auto add = [&](char const* name, char const* value_name, Binding binding, char const* meaning, CommandSet commands = in_all) {
    table.push_back({name, group, value_name, meaning, binding.takes, commands, Audience::all, binding.assign, binding.read});
  };

  group = "Model";
  add("preset", "NAME", preset(),
      "a named model: seed = gpt 8 layers, hidden 512, 8 heads, vocabulary 10000; seed-checkpoint = mlp 17 layers, hidden 2048, features "
      "784, batch 256; options below win");
  add("model", "mlp|convnet|gpt", choice(&Options::model), "what to train [gpt]");
  add("layers", "N", whole(&Options::layers, 1, limits::layers), "transformer blocks, layers of the mlp, convolutions [4, convnet 3]");
  add("hidden", "N", whole(&Options::hidden, 1, limits::width), "width, or channels [gpt 256, mlp 128, convnet 16]");
  add("features", "N", when(takes_features, whole(&Options::features, 1, limits::width)), "numbers of a synthetic sample (mlp) [64]");
  add("heads", "N", when(is_gpt, whole(&Options::heads, 1, limits::width)), "attention heads (gpt) [4]");
  add("seq", "N", when(is_gpt, whole(&Options::seq, 1, limits::width)), "tokens of a sample (gpt) [128]");
  add("vocab", "N", when(is_gpt, whole(&Options::vocab, 2, limits::vocabulary)), "tokens that exist (gpt); text needs 256 [256]");
  add("dropout", "P", when(is_gpt, real(&Options::dropout, {0, below_one})), "probability that an element is dropped (gpt) [0]");
  add("tied-embeddings", "", when(is_gpt, flag(&Options::tied_embeddings)), "input and output share one embedding (gpt) [off]");
  add("batch-norm", "per-micro|deferred|sync", when(is_convnet, choice(&Options::batch_norm)),
      "statistics of (replica, micro-batch) pieces by themselves, running ones moved by each; the same, running ones moved once an update "
      "by all; or merged over replicas (convnet) [per-micro]");

  group = "Data";
  add("data", data_forms, words(&Options::data),
      "synthetic, the bytes of a file or of a folder's files, token ids, MNIST's IDX files, CIFAR-10's binary batches [synthetic in "
      "verify and for mlp and convnet, else text:/usr/share/common-licenses]");
  add("held-out", "F", when(has_share, real(&Options::held_out, {0, below_one})),
      "share that is kept for --eval; cifar10 has a test batch [verify 0, else 0.1]");
  add("eval", "", flag(&Options::evaluate), "report loss and accuracy on the held-out part at the end [off]", bench_alone);

  group = "Work";
  add("batch", "N", when([](Options const& options) { return !options.batch_is_per_replica; }, whole(&Options::batch, 1, limits::batch)),
      "samples of an update over all ranks [8]");
  add("batch-per-replica", "N", per_replica_batch(), "the same for each replica, for weak scaling [off]");
  add("microbatches", "M", micro_batches(), "pieces of each replica's batch [gpipe and pipedream 4, else 1]");
  add("accumulate", "K", unread(micro_batches()), "another name of --microbatches where there is no pipeline [1]");
  add("steps", "N", whole(&Options::steps, 1, limits::steps), "updates that count [compare 10, else 20]");
  add("warmup", "N", whole(&Options::warmup, 0, limits::steps), "updates before them [compare 2, bench 3, verify 0]", bench_alone);
  add("rounds", "N", whole(&Options::rounds, 0, limits::rounds),
      "of a comparison; 6 or more for an official set; checkpointing: 0 leaves its table out [3]", bench_alone);
  add("seed", "N", whole(&Options::seed, 0, std::numeric_limits<std::int64_t>::max()), "of weights, data order and dropout [1]");

  group = "Pipeline";
  auto some = [&](char const* name, char const* value_name, Binding binding, char const* meaning, CommandSet commands = in_all) {
    add(name, value_name, offered(name, std::move(binding)), meaning, commands);
    table.back().audience = Audience::some;
  };
  some("mode", "flush|stash|vertical|2bw", choice(&Options::mode),
       "drain after each batch, or go on with stashed weights, with weights of one age on all stages, or with two buffers [flush]");
  some("virtual-stages", "V", whole(&Options::virtual_stages, 1, limits::ranks), "chunks on each rank: interleaved 1F1B [1]");
  some("split-backward", "off|h1|h2|v", choice(&Options::split_backward),
       "gradients of inputs and of weights apart: zero-bubble schedules [off]");
  some("backward-order", "newest|oldest", choice(&Options::backward_order), "which micro-batch goes backward first [newest]");
  some("balance", "auto|N,N,...", words(&Options::balance), "blocks of each chunk, or equal cost [auto]");
  some("split-points", "NAME,...", words(&Options::split_points), "blocks with which the chunks after the first begin");
  some("recompute", "RULE", words(&Options::recompute),
       "what forwards don't keep: none, all, every:K (blocks), sqrt, selective (attention), budget:MIB, budget:P% or budget:least "
       "(activations of a rank, least time), except-last-micro, last-stage-off [gpipe and checkpointing all, else "
       "none]");
  some("schedule", "FILE", words(&Options::schedule_file),
       "run a schedule that you wrote (plan --out shows the form), once it has passed the checker; it may define --microbatches");
  some("compare", "", flag(&Options::compare), "all pipelines in one table, for this model and these ranks [off]", plan_alone);
  some("svg", "FILE", words(&Options::svg),
       "new picture of a few updates, planned and measured over each other; plan: as planned; checkpointing: memory against time [off]",
       plan_or_bench);

  group = "Optimizer";
  add("optimizer", "sgd|adamw", choice(&Options::optimizer), "update rule [verify sgd, else adamw]");
  add("lr", "X", real(&Options::lr, {0, inf, excluded}), "learning rate [adamw 0.0003, sgd 0.1]");
  add("lr-schedule", "constant|linear|cosine", choice(&Options::lr_schedule), "of the learning rate over all steps [constant]");
  add("momentum", "X", when(is_sgd, real(&Options::momentum, {0, below_one})), "of sgd [0]");
  add("nesterov", "", when(is_sgd, flag(&Options::nesterov)), "Nesterov's momentum (sgd) [off]");
  add("weight-decay", "X", real(&Options::weight_decay, {0, inf}), "of matrices; biases and norms don't decay [0]");
  add("clip-norm", "X", real(&Options::clip_norm, {0, inf}), "largest global gradient norm; 0 = no clipping [0]");

  group = "Numbers and machine";
  add("dtype", "fp64|fp32|bf16", choice(&Options::dtype), "type of weights and activations [fp32]");
  add("backend", "reference|cpu", choice(&Options::backend), "naive loops, or oneDNN with an own deterministic matmul [cpu]");
  add("deterministic", "", flag(&Options::deterministic), "one fixed tree for every sum [on in verify, else off]");

  group = "Ranks and communication";
  add("comm", "mpi|peer", communicator(), "transport: the MPI library, or own shared memory [mpi]");
  add("ranks", "R", when([](Options const& options) { return options.ranks > 0; }, whole(&Options::ranks, 1, limits::ranks)),
      "ranks to plan for; needs no MPI", plan_alone);
  add("ranks-as-threads", "R",
      when([](Options const& options) { return options.ranks_as_threads > 0; }, whole(&Options::ranks_as_threads, 1, limits::thread_ranks)),
      "run R ranks as threads of one process, without MPI", work);
  add("bucket-mb", "N", real(&Options::bucket_mib, {0x1p-20, 1 << 20}),
      "MiB of gradients that are reduced together; zero reduces each unit by itself [25]");
  some("sequence-parallel", "", flag(&Options::sequence_parallel),
       "each tensor-parallel rank normalises, drops and adds its own rows alone (gpt) [off]");
  some("tp-chunks", "N", whole(&Options::tp_chunks, 1, TensorPart::most_chunks),
       "pieces of rows in which a row-cut product is made: the sum of one over the ranks overlaps the next [1]");
  some("layer", "off|column|row", choice(&Options::layer), "cut layers.1 of the mlp alone, by columns or rows [off]");
  some("gather-output", "", flag(&Options::gather_output),
       "gather what --layer column puts out, instead of cutting the next layer by rows [off]");
  some("scatter-input", "", flag(&Options::scatter_input),
       "cut what --layer row takes from a whole tensor, instead of cutting the layer before by columns [off]");
  some("stage", "1|2|3", whole(&Options::stage, 1, 3), "what ranks keep pieces of: the optimizer's state, gradients too, weights too [1]");
  some("reduce-order", "ranks-last|ranks-first", choice(&Options::reduce_order),
       "sum gradients over micro-batches and once over ranks, or over ranks at each micro-batch [ranks-last]");
  add("overlap", "", flag(&Options::overlap), "reduce gradients after the backward pass, not during it [off]");

  group = "Checkpoints";
  add("save", "DIR", words(&Options::save), "keep a checkpoint in a new folder: at the end, and as --save-every says [off]", bench_alone);
  add("save-every", "N", when([](Options const& options) { return options.save_every > 0; }, whole(&Options::save_every, 1, limits::steps)),
      "a checkpoint every N updates, warm-up included; the newest is kept [at the end]", bench_alone);
  add("resume", "DIR", words(&Options::resume), "go on from a checkpoint to the same end, warmup + steps; on any number of ranks [off]",
      bench_alone);

  group = "Safety";
  add("timeout", "SECONDS", real(&Options::timeout_seconds, {0, 1e9, excluded}), "a rank that is silent for longer ends the job [300]");
  add("inject", "FAULT", injected_fault(),
      "a fault on purpose: bitflip:rank=3,tensor=NAME,step=1; also nan, kill, stop, delay (seconds=), drop-reduction", work);
  add("verify", "", flag(&Options::verify_in_bench), "don't prove the result; the record says UNVERIFIED [off]", bench_alone);

  group = "Output";
  add("dry-run", "", flag(&Options::dry_run), "print every option and where ranks would run; no work [off]");
  add("out", "PATH", words(&Options::out), "new run folder [runs/...]; plan: a new file for the schedule's text [off]", plan_or_bench);
  add("json", "FILE", json_file(), "results as JSON; without FILE on stdout");
  add("csv", "FILE", words(&Options::csv), "results as CSV", bench_alone);
  add("trace", "FILE", words(&Options::trace), "Chrome trace of a few updates after the timed ones; plan: as planned", plan_or_bench);
  return table;
}

template <class Number>
bool parse_all(std::string const& text, Number& number) {
  auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

std::vector<OptionEntry> const& option_table() {
  static std::vector<OptionEntry> const table = make_table();
  return table;
}

OptionEntry const* find_option(std::string_view name) {
  for (OptionEntry const& entry : option_table())
    if (entry.name == name) return &entry;
  return nullptr;
}

bool is_of_later_version(std::string_view name) {
  static constexpr std::string_view names[] = {"micro-batch-size", "dp", "pp", "tp", "zero", "link", "expect", "memory-timeline",
                                               "threads-per-rank"};
  for (std::string_view known : names)
    if (known == name) return true;
  return false;
}

std::vector<std::string> option_names() {
  std::vector<std::string> names;
  for (OptionEntry const& entry : option_table()) names.push_back(entry.name);
  return names;
}

OptionValue value_from_text(OptionEntry const& option, std::string const& text, std::string const& origin) {
  switch (option.takes) {
    case Takes::nothing:
      return true;
    case Takes::text:
    case Takes::optional_text:
      return text;
    case Takes::whole_number: {
      std::int64_t number = 0;
      require_input(parse_all(text, number), {fmt::format("{} {}", origin, printable(text)), "a whole number is expected", ""});
      return number;
    }
    case Takes::number: {
      double number = 0;
      require_input(parse_all(text, number) && std::isfinite(number),
                    {fmt::format("{} {}", origin, printable(text)), "a number is expected", ""});
      return number;
    }
  }
  return {};
}

}  // namespace shardmark
