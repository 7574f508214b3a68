#pragma once
// A strategy is a schedule plus passes, what it predicts, and what it refuses. It has no step: the one executor runs its schedule.

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "app/options.hpp"
#include "comm/mesh.hpp"
#include "data/dataset.hpp"
#include "schedule/closed_forms.hpp"
#include "schedule/schedule.hpp"
#include "schedule/sharing_forms.hpp"
#include "schedule/traffic_forms.hpp"
#include "verify/verification.hpp"

namespace shardmark {

/// Bytes that a rank keeps all the time.
struct ModelState {
  std::int64_t weights = 0;  // masters included
  std::int64_t gradients = 0;
  std::int64_t optimizer = 0;
};

/// What theory says the schedule costs; verify and bench hold it against what was counted. Per rank and update.
struct Prediction {
  std::int64_t reductions = 0;        // collectives over gradients
  std::int64_t reduced_elements = 0;  // sum of their array sizes
  double wire_elements =
      0;  // what a ring sends of them: 2 (n-1)/n for an all-reduce, half of that for a reduce-scatter; of a gather what the root takes
  std::optional<ModelState> state;      // of one rank
  std::vector<TrafficForm> traffic;     // by axis and purpose: what layers exchange; with shared state gradients and weights
  std::optional<ClosedForms> pipeline;  // of equal stages whose three parts cost the same; without recomputation
};

/// Updates of an asynchronous pipeline (validation rule 16).
struct Lag {
  UpdateOf update = UpdateOf::batch;
  std::vector<int> of_chunk = {};  // updates by which a chunk's weights lag behind the latest; empty: none does
};

struct RankContext;

/// What a strategy compares besides the proof that all share; the same checks on every rank.
struct Supplement {
  std::vector<Check> checks = {};  // join the verdict
  std::string text = {};           // printed behind the table of checks; of rank 0
};

class Strategy {
 public:
  virtual ~Strategy() = default;
  virtual std::string name() const = 0;
  /// What it can't do on `ranks` ranks, with the reason and a remedy; also generates the table of combinations.
  virtual std::optional<Refusal> refuse(Options const& options, int ranks) const = 0;
  /// Options of some programs alone (Audience::some) that this strategy reads.
  virtual std::vector<std::string> offers() const { return {}; }
  virtual int usual_micros() const { return 1; }
  virtual std::string usual_recompute() const { return "none"; }
  /// Whether plan and bench show all rules of recomputation side by side, and --svg draws memory against time.
  virtual bool compares_rules() const { return false; }
  virtual MeshShape mesh(Options const& options, int ranks) const = 0;
  /// The algorithm as in its paper, in chunks. Pure: no rank, no tensor, no clock.
  virtual Schedule plan(Options const& options, int ranks) const = 0;
  /// How far its weights lag, by theory; none for synchronous strategies.
  virtual Lag lag(Options const&, int /*ranks*/) const { return {}; }
  /// The axes over which gradients are reduced; 0: none.
  virtual Axes reduced_over(int /*ranks*/) const { return 0; }
  /// What the ranks along those axes keep of an update.
  virtual Sharing sharing(Options const&) const { return Sharing::replicated; }
  virtual Prediction predict(Options const& options, std::vector<BlockShape> const& blocks, int ranks) const = 0;
  /// Part of `verify`, behind its proof. Collective.
  virtual Supplement supplement(RankContext const&) const { return {}; }
};

/// In the options' types: weights, masters where they are apart, one sum of gradients, the optimizer's tensors.
ModelState model_state(Options const& options, SharingForms const& forms);
/// Clipping and tied weights need every stage's gradients before an update; without them no stage of such a pipeline waits for another's.
Decisions decisions_without_flush(Options const& options);

/// The closed forms of a pipeline; those of time only where nothing is recomputed.
Prediction predict_pipeline(Options const& options, Pipeline kind, PipelineShape shape);

/// Of replicas whose gradients are all-reduced in buckets.
Prediction predict_all_reduces(Options const& options, std::vector<BlockShape> const& blocks, int ranks);

/// The blocks of each chunk: chunk c has [first[c], first[c+1]). By --balance, or so that the largest cost of a chunk is least.
/// @throws BadRequest more chunks than blocks, or another sum of blocks
std::vector<int> partition(Options const& options, std::vector<BlockShape> const& blocks, int chunks);

/// Sums by the options: fixed trees when deterministic, else micro-batches accumulate in a loop, unless each is reduced by itself.
SumOrder sum_order(Options const& options);
/// The options' bucket rule for gradients of `element_bytes`.
BucketRule bucket_rule(Options const& options);

}  // namespace shardmark
