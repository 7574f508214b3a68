#pragma once
// --save, --save-every and --resume: what must agree between the runs, and when checkpoints are written.

#include <optional>
#include <string>

#include "app/main.hpp"
#include "app/measure.hpp"
#include "run/checkpoint/checkpoint.hpp"

namespace shardmark {

/// Everything that has to be the same when a run goes on. Ranks, micro-batches, backend and communication may change.
Fingerprint fingerprint_of(Options const& options, Job const& job);

/// Refuses --resume unless the checkpoint is intact, of this job, and leaves updates to make; and jobs that can't be saved. Reads every
/// file of the checkpoint. @throws BadRequest
void require_checkpoints(Options const& options, Job const& job);

/// The checkpoint that --resume names, or nothing.
std::optional<Checkpoint> resumed_checkpoint(Options const& options);

/// The folder that --save names, or nothing. @throws BadRequest when it exists and isn't the one that the run goes on from
std::optional<CheckpointFolder> make_save_folder(Options const& options);
/// The same refusal, before anything is made.
void require_save_folder(Options const& options);

/// This launch's part of a run of warmup + steps updates.
struct Launch {
  std::int64_t before = 0;             // updates of earlier launches
  std::int64_t warmup = 0, timed = 0;  // of this one: a resumed program is cold again, and warms up on updates of the run
};
Launch launch_of(Options const& options, std::int64_t before);

/// What checkpoints cost, on top of the timed updates.
struct SaveCost {
  std::int64_t saved = 0;  // checkpoints
  std::int64_t bytes = 0;  // of the last one
  double seconds = 0;      // in which no rank trained
};

/// Writes checkpoints of a run. Every rank has one; rank 0 of the world has the folder.
class Saver {
 public:
  Saver(RankContext const& context, Rig& rig, HostExchange& exchange, std::optional<CheckpointFolder> folder, std::int64_t before);
  /// Whether a checkpoint is due once the run has made `updates`.
  bool due(std::int64_t updates) const;
  /// Saves what the program is at, unless that is saved already or an earlier checkpoint couldn't be. Collective. @returns whether the
  /// run can go on
  Proceed save();
  SaveCost const& cost() const { return cost_; }
  /// Why a checkpoint couldn't be written, on rank 0; empty: all were.
  std::string const& failure() const { return failure_; }

 private:
  RankContext const& context_;
  Rig& rig_;
  HostExchange& exchange_;
  std::optional<CheckpointFolder> folder_;
  std::int64_t saved_updates_;
  SaveCost cost_;
  Proceed proceed_ = Proceed::on;  // the same on every rank
  std::string failure_;
};

}  // namespace shardmark
