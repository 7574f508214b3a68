#pragma once
// Where the stages of a pipeline spend their time: measured, and replayed with costs from another part of the run.

#include <optional>
#include <string>
#include <vector>

#include "comm/communicator.hpp"
#include "run/job.hpp"
#include "schedule/simulate.hpp"

namespace shardmark {

/// Time of every action on this rank while it records, by kind and block, and for whom it waited.
class ActionTimes final : public Hook {
 public:
  enum class Recording : std::uint8_t { off, on };
  explicit ActionTimes(Job const& job);
  void set(Recording recording) { recording_ = recording; }
  void clear();
  void before(Program& program, Action const& action, std::int64_t window) override;
  void after(Program& program, Action const& action, std::int64_t window) override;

  /// Median of one kind of action on a block (or without one: block -1); 0 where none was seen. Unit: seconds.
  double median(Do what, std::int32_t block) const;
  /// In actions that compute: neither communication nor the decision, which is a barrier.
  double busy_seconds() const { return busy_; }
  /// In waits for messages, by the lane that they came from or went to.
  std::vector<double> const& waited_seconds() const { return waited_; }
  /// Medians of all kinds on all blocks, for other ranks.
  std::vector<double> table() const;
  static constexpr std::size_t kinds = std::size_t(Do::release) + 1;

 private:
  std::size_t cell(Do what, std::int32_t block) const { return std::size_t(what) * (blocks_ + 1) + std::size_t(block + 1); }
  std::size_t blocks_;
  std::vector<std::vector<double>> seconds_;
  std::vector<double> waited_;
  double busy_ = 0;
  Recording recording_ = Recording::off;
  std::int64_t begin_ns_ = 0;
};

/// Per global batch; the same on every rank.
struct StageReport {
  double step_seconds = 0, simulated_step_seconds = 0;
  struct Stage {
    double busy_seconds = 0;
    double bubble = 0, simulated_bubble = 0;  // share of the step in which the rank doesn't compute
    std::vector<double> waited_seconds;       // by lane
    int stashes = 0;                          // kept at once: (block, micro-batch) pairs
    std::int64_t sent_bytes = 0;              // over its boundaries, by the dry run
    std::int64_t formula_bytes = 0;
  };
  std::vector<Stage> stages;  // by rank
};

/// Times messages as large as the pipeline's between this rank and its neighbours. Collective over the pipeline.
AlphaBeta probe_link(Rig& rig);

/// What actions took on every lane, and what `link` says of messages; refers to the rig's job. Collective.
Costs measured_costs(Rig& rig, ActionTimes const& times, AlphaBeta const& link);

/// Advances `batches` global batches with `times` recording, and replays the schedule with `costs`, measured before. Collective.
/// @param sent_bytes over this rank's boundaries per global batch, counted by its dry run
StageReport report_stages(Rig& rig, ActionTimes& times, Costs const& costs, std::int64_t sent_bytes, std::int64_t batches);

/// A row a rank: busy, bubble measured and simulated, what is kept at once, what is sent, for whom it waits.
std::string stage_table(StageReport const& report, std::optional<double> formula);

}  // namespace shardmark
