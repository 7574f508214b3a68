#pragma once
// Runs in pieces: everything that an update shows, and the state behind the last one, bit for bit.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <map>

#include "app/checkpoints.hpp"
#include "validation/equivalence/ddp/rigs.hpp"
#include "validation/unit/checkpoint/files.hpp"

namespace shardmark::testing {

/// Where a run begins, how long it is, where it leaves its state. Paths may be empty.
struct Leg {
  std::int64_t updates = 0;
  std::filesystem::path from, to;
};

/// What a leg showed, on its rank 0 where ranks agree.
struct Shown {
  std::map<std::int64_t, std::vector<std::int64_t>> samples;  // by update, of all ranks, in ascending order
  std::vector<WindowResult> windows;
  std::map<std::string, std::vector<std::byte>> state;  // weights and moments
};

inline std::map<std::string, std::vector<std::byte>> state_of(HeldState const& held) {
  std::map<std::string, std::vector<std::byte>> out;
  for (auto const* pieces : {&held.weights, &held.moments})
    for (NamedPiece const& piece : *pieces) out[piece.name] = {piece.view.data, piece.view.data + piece.view.bytes()};
  return out;
}

/// Notes the samples that a rank reads for each update.
class SampleHook final : public Hook {
 public:
  void read(Program& program, HostBatch const& batch) override {
    for (std::size_t i = 0; i < batch.samples.size(); i += 2) samples_[program.updates()].push_back(batch.samples[i + 1]);
  }
  std::map<std::int64_t, std::vector<std::int64_t>> samples_;
};

inline Shown run_leg(Options const& options, Job const& job, Leg const& leg) {
  Shown out;
  std::mutex mutex;
  std::optional<Checkpoint> resumed;
  if (!leg.from.empty()) {
    resumed.emplace(leg.from);
    resumed->require_intact(*job.model, job.optimizer);
  }
  run_thread_ranks(job.mesh.ranks(), [&](Communicator& world) {
    auto ops = make_reference_backend();
    SampleHook hook;
    Rig rig(job, {.ops = *ops, .world = world, .hooks = {&hook}, .updates_before = resumed ? resumed->state().updates : 0});
    if (resumed) resumed->load(rig.program());
    rig.program().advance(leg.updates);
    rig.program().drain();
    WholeState const whole = whole_state(rig.program());
    std::lock_guard lock(mutex);
    auto state = state_of(whole.held);  // empty where another rank has collected it
    if (!out.state.empty() && !state.empty()) {
      EXPECT_EQ(state, out.state) << "replicas differ";
    }
    if (!state.empty()) out.state = std::move(state);
    for (auto const& [update, ids] : hook.samples_) out.samples[update].insert(out.samples[update].end(), ids.begin(), ids.end());
    if (world.rank() != 0) return;
    out.windows = rig.program().history();
    if (leg.to.empty()) return;
    CheckpointFolder folder(leg.to, CheckpointFolder::Existing::refuse);
    CheckpointState const saved{.updates = rig.program().updates(), .learning_rate = 0, .fingerprint = fingerprint_of(options, job)};
    folder.save(saved, rig.program(), whole.held, [] {});
  });
  for (auto& [update, ids] : out.samples) std::sort(ids.begin(), ids.end());
  return out;
}

/// The first thing in which a resumed run differs from the end of a whole one; empty: nothing.
inline std::string difference_between(Shown const& whole, Shown const& resumed) {
  for (auto const& [update, ids] : resumed.samples)
    if (!whole.samples.contains(update) || whole.samples.at(update) != ids) return "samples of update " + std::to_string(update + 1);
  std::size_t const skipped = whole.windows.size() - resumed.windows.size();
  for (std::size_t w = 0; w < resumed.windows.size(); ++w) {
    WindowResult const &a = whole.windows[w + skipped], &b = resumed.windows[w];
    std::string const update = std::to_string(a.update);
    if (a.update != b.update) return "number of update " + update;
    if (a.rate != b.rate) return "learning rate of update " + update;
    if (a.loss != b.loss) return "loss of update " + update;
    if (a.counted != b.counted || a.norm != b.norm) return "counts or norm of update " + update;
  }
  for (auto const& [name, bytes] : whole.state)
    if (!resumed.state.contains(name) || resumed.state.at(name) != bytes) return name;
  return whole.state.size() == resumed.state.size() ? "" : "names";
}

class ResumeTest : public test::DataFiles {
 protected:
  /// 64 windows of 8 bytes; updates of 16.
  Options text_options() {
    std::string text;
    for (int i = 0; i < 64 * 8 + 1; ++i) text += char(32 + (i * 7 + i / 11) % 90);
    Options o;
    o.program = "ddp";
    o.layers = 1;
    o.hidden = 12;
    o.heads = 3;
    o.seq = 8;
    o.batch = 16;
    o.dropout = 0.1;
    o.data = "text:" + write("text", text).native();
    o.held_out = 0;
    o.optimizer = OptimizerKind::adamw;
    o.lr = 0.01;
    o.weight_decay = 0.1;
    o.lr_schedule = LrSchedule::cosine;
    o.deterministic = true;
    o.warmup = 0;
    o.steps = 10;
    return o;
  }
  static Job job_for(Options const& options, int ranks, Strategy const& strategy = *make_ddp()) {
    return build_job(options, strategy, ranks, options.dtype, JobPurpose::training, build_dataset(options, ranks, JobPurpose::training));
  }
};

}  // namespace shardmark::testing
