#pragma once
// The proof that a schedule is right, before anything runs.

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
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
  fifo,         // the same, and messages of one pair and channel match in order of posting
  launch_order  // NCCL: groups of one communicator start in the order in which they were posted, and occupy its stream
};

inline constexpr CommunicationModel communication_models[] = {CommunicationModel::rendezvous, CommunicationModel::fifo,
                                                              CommunicationModel::launch_order};
std::string_view name(CommunicationModel model);
/// The models that transports of a kind need: launch_order only where messages are matched by it.
std::span<CommunicationModel const> models_of(Matching matching);

/// What the checker found about a lane. Peaks of activations count (block or chunk, micro-batch) pairs, summed over the lane's blocks or
/// chunks.
struct LaneFacts {
  int peak_stashes = 0;          // whole and selective stashes, from forward (recomputed: from recompute) to backward or backward_input
  int peak_boundary_inputs = 0;  // kept only as the input of what will be recomputed
  int peak_weight_residues = 0;  // between backward_input and backward_weight
  int peak_held = 0;             // stashes and residues together
  int peak_versions = 1;         // weight versions of one unit at once: the latest, and those that a later action still reads
  int peak_gradients = 1;        // updates whose gradients are held at once, complete or not
  int staleness = 0;             // most updates between the weights that a gradient is of and those that it's applied to
  int sends = 0, receives = 0, collectives = 0;  // postings per repetition of the body
};

struct Proof {
  std::vector<LaneFacts> lanes;
  int windows_checked = 0;
  std::vector<CommunicationModel> models = {};  // under which it ends
};

/// Unrolls `windows` repetitions (0: as many as there are lanes, plus 2) and proves:
/// - every chunk forwards and backwards each micro-batch exactly once, after what it depends on; a recomputation finds its input, and
///   a backward its whole stash;
/// - a backward reads its forward's version, no forward reads a version that isn't made yet, and under
///   Weights::latest each reads the latest;
/// - each leaf is folded once, into its own update, which comes next unless decisions are deferred; every bucket is reduced once per
///   update (Inside::replicas: per micro-batch), after its last leaf; every tied unit is tied once; then one decision, and each unit is
///   updated once. To a deferred decision every lane has given its part, with its tied units added;
/// - weights that ranks share are whole where a block uses them, gathered once for it, and given back or updated after that;
/// - every posting is waited for exactly once, in its run of the section (deferred decisions: later); sends and receives match;
/// - it ends under all `models` (empty: models_of(schedule.matching)), with waits that block. Without communication (coarse, refined):
///   some order exists.
/// @throws BadSchedule
Proof check(Schedule const& schedule, std::vector<BlockShape> const& blocks, int windows = 0,
            std::span<CommunicationModel const> models = {});

}  // namespace shardmark
