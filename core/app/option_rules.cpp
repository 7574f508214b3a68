#include "app/option_rules.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "app/coarse_schedule.hpp"
#include "app/data_request.hpp"
#include "app/describe.hpp"

namespace shardmark {
namespace {

constexpr char const* text_on_every_debian = "text:/usr/share/common-licenses";
constexpr double sgd_learning_rate = 0.1;
constexpr double usual_held_out = 0.1;

class Request {
 public:
  Request(Usage const& usage, Command command, std::vector<GivenOption> given) : usage_(usage), given_(std::move(given)) {
    options_.program = usage.program;
    options_.command = command;
    options_.extra = usage.extra;
    options_.micros = usage.micros;
    options_.recompute = usage.recompute;
    // The table's order: the preset and the model come first, and decide the defaults of what follows.
    std::stable_sort(given_.begin(), given_.end(), [](GivenOption const& a, GivenOption const& b) { return a.entry < b.entry; });
  }

  Options complete() {
    require_command();
    set_command_defaults();
    assign();
    set_late_defaults();
    read_written_schedule();
    check_model();
    check_data();
    check_work();
    check_output();
    check_optimizer();
    check_ranks();
    return options_;
  }

 private:
  GivenOption const* find(std::string_view name) const {
    for (GivenOption const& option : given_)
      if (option.entry->name == name) return &option;
    return nullptr;
  }

  void refuse_both(std::string_view one, std::string_view other, std::string const& reason) const {
    GivenOption const *a = find(one), *b = find(other);
    if (a != nullptr && b != nullptr) fail_input({fmt::format("{} and {} are both given", a->origin, b->origin), reason, "leave one out"});
  }

  void require_command() const {
    for (GivenOption const& option : given_)
      require_input((option.entry->commands & in(options_.command)) != 0,
                    {option.origin, fmt::format("means nothing in {}", name(options_.command)), "leave it out"});
  }

  void set_command_defaults() {
    bool const proves = options_.command == Command::verify;
    options_.optimizer = proves ? OptimizerKind::sgd : OptimizerKind::adamw;
    options_.deterministic = proves;
    options_.held_out = proves ? 0 : usual_held_out;
    options_.steps = proves ? 20 : usage_.bench_steps;
    options_.warmup = proves ? 0 : usage_.bench_warmup;
  }

  void assign() {
    for (GivenOption const& option : given_)
      if (option.entry->name == "model") option.entry->assign(options_, option.value, option.origin);
    if (options_.model == ModelKind::mlp) options_.hidden = 128;
    if (options_.model == ModelKind::convnet) options_.layers = 3, options_.hidden = 16;
    for (GivenOption const& option : given_)
      if (option.entry->name != "model") option.entry->assign(options_, option.value, option.origin);
  }

  void set_late_defaults() {
    if (find("lr") == nullptr) options_.lr = options_.optimizer == OptimizerKind::sgd ? sgd_learning_rate : 3e-4;
    if (options_.data.empty()) {
      bool const real_text = options_.model == ModelKind::gpt && options_.command != Command::verify;
      options_.data = real_text ? text_on_every_debian : "synthetic";
    }
    if (options_.ranks_as_threads > 0 && !options_.comm_given) options_.comm = CommKind::peer;
  }

  /// Its micro-batches count where an update is a whole batch, unless --microbatches says something else, which is refused later.
  void read_written_schedule() {
    if (options_.schedule_file.empty()) return;
    for (char const* option : {"virtual-stages", "split-backward", "backward-order"})
      refuse_both("schedule", option, "each says in which order the actions come");
    options_.written = std::make_shared<Schedule const>(read_schedule(options_.schedule_file));
    bool const whole_batches = options_.mode == PipelineMode::flush || options_.mode == PipelineMode::two_buffers;
    if (!options_.micros_given && whole_batches) options_.micros = options_.written->micros_per_window;
  }

  void check_model() const {
    require_preset_model();
    if (options_.model != ModelKind::convnet) refuse_for_model({"batch-norm"}, ModelKind::convnet);
    if (options_.model != ModelKind::mlp) refuse_for_model({"features"}, ModelKind::mlp);
    if (options_.model != ModelKind::gpt) return refuse_for_model({"heads", "seq", "vocab", "dropout", "tied-embeddings"}, ModelKind::gpt);
    if (options_.hidden % options_.heads == 0) return;
    std::string divisors;
    for (std::int64_t heads = 1; heads <= std::min<std::int64_t>(options_.hidden, 64); ++heads)
      if (options_.hidden % heads == 0) divisors += (divisors.empty() ? "" : ", ") + std::to_string(heads);
    fail_input({fmt::format("hidden {} for {} heads", options_.hidden, options_.heads), "the heads' widths would not be whole",
                fmt::format("use --heads {}", divisors)});
  }

  void require_preset_model() const {
    GivenOption const *model = find("model"), *preset = find("preset");
    if (model == nullptr || preset == nullptr) return;
    require_input(std::get<std::string>(model->value) == name(options_.model),
                  {fmt::format("{} and {} are both given", preset->origin, model->origin),
                   fmt::format("the preset is of model {}", name(options_.model)), "leave one out"});
  }

  /// Options that belong to another model.
  void refuse_for_model(std::initializer_list<char const*> names, ModelKind owner) const {
    for (char const* option_name : names)
      if (GivenOption const* option = find(option_name))
        fail_input({option->origin, fmt::format("means nothing for model {}", name(options_.model)),
                    fmt::format("leave it out, or use --model {}", name(owner))});
  }

  void check_data() const {
    GivenOption const* data = find("data");
    std::string const origin = data != nullptr ? data->origin : "--data";
    DataKind const kind = parse_data(options_.data, origin).kind;
    if (auto const models = models_for(kind); std::find(models.begin(), models.end(), options_.model) == models.end())
      fail_input({fmt::format("{} is {} for model {}", origin, name(kind), name(options_.model)),
                  options_.model == ModelKind::gpt ? "it takes tokens" : "it takes vectors",
                  fmt::format("use --data synthetic or --model {}", name(models.front()))});
    require_input(kind != DataKind::text || options_.vocab >= 256, {fmt::format("vocabulary {} for text", options_.vocab),
                                                                    "text is bytes, which have 256 values", "use --vocab 256 or more"});
    GivenOption const* features = find("features");
    require_input(kind == DataKind::synthetic || features == nullptr,
                  {features != nullptr ? features->origin : "", fmt::format("{} has samples of its own size", name(kind)), "leave it out"});
    GivenOption const* held_out = find("held-out");
    require_input(is_cut_by_share(kind) || held_out == nullptr,
                  {held_out != nullptr ? held_out->origin : "",
                   kind == DataKind::cifar10 ? "cifar10 comes with a test batch" : "synthetic data has no held-out part", "leave it out"});
    require_input(!(options_.evaluate && is_cut_by_share(kind) && options_.held_out == 0),
                  {"--eval with nothing held out", "there is nothing to evaluate on", "use --held-out 0.1"});
  }

  void check_output() const {
    if (!options_.compare) return;
    for (char const* option : {"out", "svg", "trace", "json", "schedule"})
      refuse_both("compare", option, "the table is of all pipelines, not of one");
  }

  void check_work() const {
    refuse_both("batch", "batch-per-replica", "each says how many samples an update has");
    require_input(options_.save_every == 0 || !options_.save.empty(),
                  {"--save-every without --save", "there is no folder to save in", "add --save DIR"});
    refuse_both("balance", "split-points", "each says which blocks a chunk has");
    refuse_both("microbatches", "accumulate", "they are one option with two names");
    require_input(options_.micros <= options_.batch,
                  {fmt::format("{} micro-batches of {} samples", options_.micros, options_.batch), "some would be empty on every rank",
                   fmt::format("use --microbatches {} or fewer, or raise --batch", options_.batch)});
  }

  void check_optimizer() const {
    if (options_.optimizer != OptimizerKind::sgd)
      for (char const* name : {"momentum", "nesterov"})
        if (GivenOption const* option = find(name))
          fail_input({option->origin, "means nothing for optimizer adamw", "leave it out, or use --optimizer sgd"});
    require_input(!(options_.nesterov && options_.momentum == 0),
                  {"--nesterov without momentum", "there is nothing to look ahead along", "add --momentum 0.9"});
  }

  void check_ranks() const {
    require_input(!(options_.ranks_as_threads > 0 && options_.comm == CommKind::mpi),
                  {"--comm mpi with --ranks-as-threads", "threads of one process don't use MPI", "leave --comm out"});
    int const ranks = std::max(options_.ranks, options_.ranks_as_threads);
    require_input(
        !(options_.inject && ranks > 0 && options_.inject->rank >= ranks),
        {fmt::format("--inject on rank {} of {}", options_.inject ? options_.inject->rank : 0, ranks), "there is no such rank", ""});
    if (options_.command == Command::verify && !options_.deterministic && options_.inject && options_.inject->step > 1)
      fail_input({fmt::format("--inject at step {} with --no-deterministic", options_.inject->step), "verify then proves step 1 alone",
                  "choose step 1, or leave --no-deterministic out"});
  }

  Usage const& usage_;
  std::vector<GivenOption> given_;
  Options options_;
};

}  // namespace

std::string dashed(std::string_view name) { return fmt::format("--{}", name); }

Options complete(Usage const& usage, Command command, std::vector<GivenOption> given) {
  return Request(usage, command, std::move(given)).complete();
}

std::int64_t global_batch(Options const& options, int replicas) {
  return options.batch_is_per_replica ? options.batch * replicas : options.batch;
}

void require_fit(Options const& options, int replicas) {
  expect(replicas >= 1, "replicas are at least one");
  std::int64_t const largest = options.batch_is_per_replica ? options.batch : (options.batch + replicas - 1) / replicas;
  require_input(options.micros <= largest, {fmt::format("{} micro-batches for a replica with {} samples", options.micros, largest),
                                            fmt::format("batch {} over {}", global_batch(options, replicas), count_of(replicas, "replica")),
                                            fmt::format("use --microbatches {} or fewer, or raise --batch", largest)});
}

}  // namespace shardmark
