#include "app/checkpoints.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "app/option_table.hpp"
#include "metrics/clock.hpp"

namespace shardmark {
namespace {

namespace fs = std::filesystem;

std::string text_of(OptionValue const& value) {
  return std::visit(
      [](auto const& held) -> std::string {
        using Held = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<Held, std::monostate>)
          return "";
        else if constexpr (std::is_same_v<Held, bool>)
          return held ? "on" : "off";
        else
          return fmt::format("{}", held);
      },
      value);
}

bool goes_on_in_place(Options const& options) {
  std::error_code error;
  return !options.resume.empty() && fs::equivalent(options.save, options.resume, error);
}

}  // namespace

Fingerprint fingerprint_of(Options const& options, Job const& job) {
  Fingerprint out;
  for (char const* name : {"model", "layers", "hidden", "features", "heads", "seq", "vocab", "dropout", "tied-embeddings", "batch-norm",
                           "dtype", "seed", "optimizer", "lr", "lr-schedule", "momentum", "nesterov", "weight-decay", "clip-norm"})
    if (std::string value = text_of(find_option(name)->read(options)); !value.empty()) out.push_back({name, std::move(value)});
  // Falls over the whole run, whose length then matters.
  if (job.optimizer.rate.shape != RateShape::constant)
    out.push_back({"number of updates in the learning-rate schedule", fmt::format("{}", job.optimizer.rate.updates)});
  out.push_back({"global batch", fmt::format("{}", job.global_batch)});
  DataSource const& source = job.data->source();
  out.push_back({"data", source.kind});
  out.push_back({"number of training samples", fmt::format("{}", job.data->size())});
  if (!source.sha256.empty()) out.push_back({"data's SHA-256", source.sha256});
  return out;
}

void require_checkpoints(Options const& options, Job const& job) {
  bool const sharded = job.mesh.pipeline > 1 || job.mesh.tensor > 1;
  require_input(!sharded || (options.save.empty() && options.resume.empty()),
                {"--save and --resume with weights cut over ranks", "in this version one rank writes all of them", "leave them out"});
  auto const checkpoint = resumed_checkpoint(options);
  if (!checkpoint) return;
  auto const refuse = [&](std::string const& reason, std::string const& remedy) {
    fail_input({fmt::format("can't resume from {}", checkpoint->text()), reason, remedy});
  };
  if (auto const other = difference(checkpoint->state().fingerprint, fingerprint_of(options, job)))
    refuse(*other, "give the options that it was saved with, or start without --resume");
  checkpoint->require_intact(*job.model, job.optimizer);
  std::int64_t const updates = checkpoint->state().updates, all = options.warmup + options.steps;
  if (updates >= all)
    refuse(fmt::format("it has made {} updates, and the run ends after warmup + steps = {}", updates, all), "raise --steps");
  if (options.inject && options.inject->step <= updates)
    refuse(fmt::format("--inject at step {} lies before it", options.inject->step), "choose a later step");
}

std::optional<Checkpoint> resumed_checkpoint(Options const& options) {
  if (options.resume.empty()) return std::nullopt;
  return Checkpoint(options.resume);
}

void require_save_folder(Options const& options) {
  if (!options.save.empty() && !goes_on_in_place(options)) CheckpointFolder::require_new(options.save);
}

std::optional<CheckpointFolder> make_save_folder(Options const& options) {
  if (options.save.empty()) return std::nullopt;
  using Existing = CheckpointFolder::Existing;
  return CheckpointFolder(options.save, goes_on_in_place(options) ? Existing::go_on : Existing::refuse);
}

Launch launch_of(Options const& options, std::int64_t before) {
  std::int64_t const left = options.warmup + options.steps - before;
  Launch out{.before = before, .warmup = std::min(options.warmup, left - 1), .timed = left};
  out.timed -= out.warmup;
  return out;
}

Saver::Saver(RankContext const& context, Rig& rig, HostExchange& exchange, std::optional<CheckpointFolder> folder, std::int64_t before)
    : context_(context), rig_(rig), exchange_(exchange), folder_(std::move(folder)), saved_updates_(before) {}

bool Saver::due(std::int64_t updates) const {
  Options const& o = context_.options;
  return !o.save.empty() && o.save_every > 0 && updates % o.save_every == 0;
}

Proceed Saver::save() {
  if (context_.options.save.empty() || proceed_ == Proceed::no_further) return proceed_;
  std::int64_t const begin = now_ns();
  Program& program = rig_.program();
  program.drain();
  std::int64_t const updates = program.updates();
  if (updates == saved_updates_) return proceed_;
  context_.board.set(updates, RankState::working, "checkpoint");
  WholeState const whole = whole_state(program);
  if (folder_) try {
      CheckpointState const state{.updates = updates,
                                  .learning_rate = rig_.job().optimizer.rate.at(updates),
                                  .fingerprint = fingerprint_of(context_.options, rig_.job())};
      cost_.bytes = folder_->save(state, program, whole.held, [&] { context_.board.beat(); });
    } catch (Error const& error) {
      failure_ = error.what();
    }
  if (exchange_.max(failure_.empty() ? 0 : 1) > 0) proceed_ = Proceed::no_further;  // others wait here while rank 0 writes
  cost_.seconds += seconds_between(begin, now_ns());
  if (proceed_ == Proceed::no_further) return proceed_;
  saved_updates_ = updates;
  ++cost_.saved;
  return proceed_;
}

}  // namespace shardmark
