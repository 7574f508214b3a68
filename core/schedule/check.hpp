#pragma once
// The proof that a schedule is right, before anything runs.

#include <string>
#include <vector>

#include "base/error.hpp"
#include "schedule/schedule.hpp"

namespace shardmark {

/// A schedule that can't be executed; the message names the lane, the position and the first bad action.
class BadSchedule : public Error {
 public:
  explicit BadSchedule(std::string const& message) : Error(Exit::bad_request, message) {}
};

/// How sends end.
enum class CommunicationModel : std::uint8_t {
  rendezvous,   // MPI without buffering: a send completes when its receive is posted; waits block
  fifo,         // unbuffered, and messages of one pair and channel match in order of posting
  launch_order  // NCCL: groups of one communicator start in the order in which they were posted, and occupy its stream
};

/// What the checker found about a lane. Units: micro-batches of one block or chunk.
struct LaneFacts {
  int peak_stashes = 0;                          // full stashes, forward to backward (or weight backward)
  int peak_boundary_inputs = 0;                  // kept only as boundary inputs, because they are recomputed
  int peak_weight_residues = 0;                  // between backward_input and backward_weight
  int peak_versions = 1;                         // weight versions of one unit at once
  int staleness = 0;                             // largest (latest version - version used by backward)
  int sends = 0, receives = 0, collectives = 0;  // postings per window
};

struct Proof {
  std::vector<LaneFacts> lanes;
  int windows_checked = 0;
};

/// Unrolls `windows` windows (0: as many as the pipeline is deep, plus 2) and proves: each micro-batch forward and backward exactly
/// once per chunk; dependencies; each leaf folded once; every bucket reduced once per window, after its last fold and before decide; every
/// posting waited for exactly once; sends and receives matched, in order, per channel; versions: a backward uses its forward's
/// version, an update follows all its window's folds; and that it ends under all three models.
/// @throws BadSchedule
Proof check(Schedule const& schedule, std::vector<BlockShape> const& blocks, int windows = 0);

}  // namespace shardmark
