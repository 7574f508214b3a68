#pragma once
// A schedule is data: what every lane does, in order. The object that is printed, checked, simulated and executed is one and
// the same. Depends on base alone: no tensors, no MPI, no clock.
//
//   planner (coarse: chunks)  ->  refine (blocks)  ->  recompute -> bucket -> lower (communication)  ->  check  ->  execute
//
// A lane is a prologue, a body that repeats, and an epilogue (three sections). Ids in the prologue are absolute. Ids in the body are
// those of its first repetition: each later one adds `micros_per_window` to every micro-batch and `versions_per_window` to every
// version. Epilogue ids count from the moment the body stops, as if it had run zero times: they are shifted by all its repetitions.
// shifted() does this; a version that comes out below 0 is version 0, the initial weights.
//
// A synchronous lane has an empty prologue and epilogue. An asynchronous lane at stage s of S runs w = S-1-s backwards behind its
// forwards. Its prologue has the first windows, enough to forward S-1 micro-batches, without the last w backwards; its epilogue has
// w backwards. So after any number of repetitions all lanes have forwarded equally many micro-batches, and the epilogue ends them all:
//
//   S=3, an update after each backward   prologue          body (repeats)  epilogue
//   stage 0                            | F0 F1           | F2 B0         | B0 B1
//   stage 1                            | F0 F1 B0        | F2 B1         | B1
//   stage 2                            | F0 B0 F1 B1     | F2 B2         |

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.hpp"
#include "base/sums.hpp"
#include "base/types.hpp"

namespace shardmark {

enum class Do : std::uint8_t {
  forward,          // chunk, micro, version
  backward,         // chunk, micro, version: input and weight gradients
  backward_input,   // chunk, micro, version
  backward_weight,  // chunk, micro, version
  recompute,        // chunk, micro, version: forward again, before its backward; more than once where it keeps less than a stash
  reduce,           // coarse mark: all gradients of an update are complete on this lane; lower() turns it into posts and waits
  fold,             // chunk, micro: the leaf gradients of this block and micro-batch join their sums
  post,             // token: start a group of messages or a collective
  wait,             // token: complete it
  tie,              // unit, version: add the slots of this tied unit in ascending order, once
  decide,           // version: norm, clip, non-finite, learning rate: one decision for the update (see Decisions)
  update,           // version: coarse: all units of the lane; refined: `unit`
  release           // unit: its gathered weights are given back (Sharing::parameters)
};
std::string_view name(Do what);

/// What a forward leaves for its backward; and a recomputation, which is a forward once more.
enum class Kept : std::uint8_t {
  stash,      // everything: no recomputation in between
  selective,  // a stash without what a recomputation makes again from the rest of it; of a recomputation: it does so
  input,      // its input: it is run again from there
  nothing     // it is run again from the output of the block before it, whose recomputation comes right before
};
std::string_view name(Kept kept);

struct Action {
  Do what = Do::forward;
  ChunkId chunk = {};
  MicroId micro = {};
  Version version = {};  // forward, backward: which weights to read; tie, decide, update: the version that is being made
  Token token = {};
  UnitId unit = {};
  Kept keeps = Kept::stash;  // forward, recompute
  auto operator<=>(Action const&) const = default;
};

enum class Transfer : std::uint8_t { send, receive, collective };

/// What a token stands for. Postings with the same token form one group: one call of Communicator::post, one Request.
/// A token is posted once and waited for once in one run of its section, so nothing is outstanding between two repetitions; but what
/// lanes exchange for a decision that they defer (Schedule::defers) has one token in all sections of a lane, and is waited for later, as
/// often as it was posted: first posted, first waited for.
/// Ids are shifted like the actions of the section.
struct Posting {
  Token token = {};
  Transfer transfer = Transfer::send;
  // send and receive: the tensor that crosses the boundary in front of block `edge` (activation) or its gradient
  int peer = -1;  // lane
  ChunkId edge = {};
  bool gradient = false;
  MicroId micro = {};  // also of a collective that runs at every micro-batch (Inside::replicas): the leaves of that one
  // collective: over the ranks that differ on `axes`: a sum of the gradients of `bucket`, or the weights of `unit` made whole
  Collective what = Collective::all_reduce;
  Axes axes = 0;
  BucketId bucket = {};
  // the holders of a tied unit instead of axes: an all-gather over the mesh's group `group` = tied_group(unit); empty: none.
  // Every member sends its slots in ascending order (TiedUnit::slots_per_holder pieces; a holder of fewer sends zeros behind them),
  // members are in lane order. `tie` then adds all slots, ascending, the same on every holder.
  // Or all lanes, group = decision_group: an all-reduce of their parts of a decision.
  std::string group = {};
  UnitId unit = {};
  auto operator<=>(Posting const&) const = default;
};

enum class Section : std::uint8_t { prologue, body, epilogue };
inline constexpr Section sections[] = {Section::prologue, Section::body, Section::epilogue};
std::string_view name(Section section);

struct Lane {
  std::vector<Action> prologue = {}, body = {}, epilogue = {};
  std::vector<Posting> postings = {};  // ascending tokens

  std::vector<Action>& operator[](Section section);
  std::vector<Action> const& operator[](Section section) const;
  bool operator==(Lane const&) const = default;
};

/// Gradients of one unit that one use site produces: unit and slot. A tied unit has one slot per use.
struct Segment {
  UnitId unit = {};
  int slot = 0;
  auto operator<=>(Segment const&) const = default;
};

/// Segments that are reduced together: consecutive in the order in which backward completes them.
struct Bucket {
  BucketId id = {};
  std::vector<Segment> segments = {};
  std::int64_t elements = 0;
  std::vector<std::int64_t> elements_of_segment = {};  // they add up to `elements`
  bool operator==(Bucket const&) const = default;
};

/// What a schedule must know of one block; no tensors.
struct BlockShape {
  std::string name = {};
  std::vector<Segment> produces = {};                        // gradient segments that its backward completes a leaf of
  std::vector<std::int64_t> elements = {};                   // of each of those segments
  std::int64_t boundary_elements = 0;                        // per sample, of its output
  double forward_cost = 1, input_cost = 1, weight_cost = 1;  // relative, for simulate and balance
  double selective_cost = 0;                                 // of what completes a selective stash; 0: there is nothing to leave out
};

/// How far a schedule is on its way to the executor.
enum class Form : std::uint8_t { coarse, refined, lowered };

/// Which weights a forward reads: the latest of its lane (synchronous schedules, PipeDream with stashing), or older ones on purpose
/// (vertical sync, double-buffered weights, and their serial twins).
enum class Weights : std::uint8_t { latest, delayed };
std::string_view name(Weights weights);

/// What the ranks that reduce gradients together hold of an update (ZeRO: Rajbhandari et al., SC 2020). Shared things are cut, unit by
/// unit, into equal pieces, one a rank; the unit is padded for that, and a piece may begin and end inside a tensor.
enum class Sharing : std::uint8_t {
  replicated,  // everything
  optimizer,   // stage 1: a piece of the optimizer's state, and of master weights
  gradients,   // stage 2: of the sums of gradients too
  parameters,  // stage 3: of the weights too; a block's are gathered while it runs
  root         // nothing is cut: rank 0 has all sums, state and master weights, and broadcasts weights (a parameter server)
};
/// The collective by which gradients become their sums.
Collective sum_of(Sharing sharing);
/// And the one by which updated weights become whole again on every rank. @pre not replicated
Collective gather_of(Sharing sharing);

/// Who decides on an update: its norm and clipping, and that it's skipped where a value isn't finite.
enum class Decisions : std::uint8_t {
  joint,    // all lanes together, once each has all gradients of the update. With a flush a barrier; without one each lane goes on with
            // later micro-batches until `decide` stands in its order, and keeps the gradients of the updates that are under way
  per_lane  // each lane for its own part, right behind its own gradients: pipelines without a flush only
};
std::string_view name(Decisions decisions);

/// How a transport finds the two ends of a message.
enum class Matching : std::uint8_t {
  by_name,         // MPI, by peer and tag: on each channel one receive is posted ahead, so that a message is always on its way
  by_launch_order  // NCCL runs the messages of a communicator one after another: all lanes post them in one order, receives early
};

struct Schedule {
  std::string name = {};
  std::vector<int> lane_of_chunk = {};  // coarse: chunk -> lane; refined: block -> lane
  std::vector<Lane> lanes = {};
  std::vector<std::vector<Bucket>> buckets = {};  // per lane, in backward order; empty before bucketing
  SumOrder sum = {};
  SumShape leaves = {};       // of each gradient segment in one update, on one replica (serial twins: replicas x micros)
  int micros_per_window = 1;  // forwards of one body
  int versions_per_window = 1;
  Weights weights = Weights::latest;
  Decisions decisions = Decisions::joint;
  Form form = Form::coarse;
  Axes reduced_over = 0;  // the axes that lower() was given
  Sharing sharing = Sharing::replicated;
  Matching matching = Matching::by_name;

  /// Update u (from 0) makes version u+1 from the micro-batches [u, u+1) * micros_per_update().
  int micros_per_update() const { return micros_per_window / versions_per_window; }
  bool synchronous() const;
  /// All lanes know what is decided, one lane alone included.
  bool decides_jointly() const { return decisions == Decisions::joint || lanes.size() == 1; }
  /// Joint decisions without a flush: lanes make gradients of later updates before the decision.
  bool defers() const { return decisions == Decisions::joint && lanes.size() > 1 && !synchronous(); }
  bool operator==(Schedule const&) const = default;
};

/// The action as it is in a section that runs after `windows` repetitions of the body (prologue: 0).
Action shifted(Action action, Schedule const& schedule, int windows);
/// Elements of what a collective over axes is about: a bucket, or a unit. 0: not in the schedule's buckets.
std::int64_t elements_of(Posting const& posting, Schedule const& schedule);
/// The postings of one token, in a lane of an unshifted schedule.
std::span<Posting const> postings_of(Lane const& lane, Token token);

/// A unit that several blocks use: one gradient slot per use.
struct TiedUnit {
  UnitId unit = {};
  std::vector<int> lane_of_slot = {};  // ascending slots
  std::vector<int> holders() const;    // distinct lanes, ascending
  int slots_per_holder() const;        // the largest number of slots on one lane
  bool on(int lane) const;
  bool shared() const { return holders().size() > 1; }
};
/// Units with more than one slot, ascending. `lane_of_block` as in a refined schedule.
std::vector<TiedUnit> tied_units(std::vector<BlockShape> const& blocks, std::vector<int> const& lane_of_block);
/// The units whose gradients the blocks of `lane` produce, ascending, each once: those that this lane updates.
std::vector<UnitId> units_of_lane(std::vector<BlockShape> const& blocks, std::vector<int> const& lane_of_block, int lane);
/// "tied:<unit>": the name of the mesh's group of holders.
std::string tied_group(UnitId unit);
/// The mesh's group of all lanes, apart from that of their messages. Only schedules that defer have it.
inline constexpr char const* decision_group = "decision";

/// What a pipeline planner takes: no options, no tensors.
struct PipelineShape {
  int stages = 1;
  int micros = 1;
  int chunks_per_stage = 1;
  Decisions decisions = Decisions::per_lane;  // of pipelines without a flush; the others always decide jointly
};

/// One lane, `micros` micro-batches in ascending order, each forward then backward; reduce, update. `serial` and one replica of `ddp`.
Schedule plan_sequential(std::string name, int micros);
/// The same with the leaves of a serial twin: `leaves.outer` replicas of `leaves.inner` micro-batches, all on this lane.
Schedule plan_sequential(std::string name, SumShape leaves);

/// Serial SGD with delays, which knows nothing of pipelines (validation rule 16): update u reads version max(0, u - delays[c]) of chunk c,
/// and its gradient is applied to the latest. One lane, `micros` micro-batches an update. The twin of PipeDream's modes.
Schedule plan_delayed(std::string name, std::vector<int> const& delays, int micros);

// ---- passes: each takes a schedule and returns the next one

/// From chunks to blocks. `first_block[c]..first_block[c+1]` are chunk c's blocks; every block exactly once.
/// Forward walks blocks upwards, backward downwards with a fold after each (split: after each backward_weight); blocks without
/// parameters fold nothing. update becomes: tie for each tied unit that this lane holds a slot of, decide, and one update for each
/// unit of units_of_lane(), ascending. A tied unit is thus updated once on each lane that holds it, from equal sums.
/// @throws Error when first_block isn't a partition.
Schedule refine(Schedule const& coarse, std::vector<BlockShape> const& blocks, std::vector<int> const& first_block);

/// The micro-batches of all replicas of a serial twin side by side: each block runs micro-batch k of every replica before the next block
/// runs any, so that their statistics can be merged (M = 1, replicas a and b: Fa0 Fb0 Fa1 Fb1 Bb.. instead of Fa0 Fa1 Ba1 ..). The leaves
/// are the same; they come in another order, which the tree doesn't see. @pre refined, one lane, synchronous
Schedule side_by_side(Schedule refined);

struct BucketRule {
  std::int64_t cap_bytes = 25 << 20;
  std::int64_t first_cap_bytes = 1 << 20;  // the first bucket closes early, so that communication starts early
  bool last_alone = true;                  // the segment that completes last is a bucket of its own: it is the exposed one
  std::size_t element_bytes = 4;
};
/// Groups each lane's segments, in the order in which the last micro-batch's backward completes them. A segment is never cut: it
/// joins the open bucket unless that would exceed the cap, so one that is larger than the cap is a bucket of its own.
Schedule bucket(Schedule refined, std::vector<BlockShape> const& blocks, BucketRule const& rule);

enum class Overlap : std::uint8_t { off, on };
/// Inserts communication.
///
/// Between lanes: what an action makes is sent right behind it; the send is waited for when the receiver should have used it, at the
/// latest at the end of the section. Receives: see Matching. Posts and waits follow one order of all lanes' actions (by the blocks'
/// costs), so every schedule whose data can flow ends under the models of its matching, whatever the durations really are.
///
/// On `axes` (data): one all-reduce per bucket and update, posted after the fold that completes it (Overlap::on) or all at the reduce
/// mark (off), waited for at the mark in order of posting. `axes` = 0: no reduction. With Inside::replicas each micro-batch's leaves are
/// reduced bucket by bucket before they are folded: folds move behind the waits.
///
/// With Schedule::sharing the sums are reduce-scatters, a bucket holds one segment, and weights are all-gathered (lower_sharing.cpp): after
/// their update, or, with Sharing::parameters, for every block that uses them. With Sharing::root buckets are gathered on rank 0, and
/// weights broadcast after their update.
///
/// A tied unit with holders on several lanes: after the reduction, an all-gather over its holders before `tie`.
/// @throws BadRequest when such a schedule has decisions by lane: its lanes would wait for each other.
///
/// Deferred decisions: what a lane gives to them is posted behind its own gradients, and waited for before `tie` and `decide`. The first
/// lane counts tied units in the norm, and gives its part behind `tie`. @throws BadRequest for one whose first slot is on another lane.
Schedule lower(Schedule const& bucketed, std::vector<BlockShape> const& blocks, Axes axes, Overlap overlap,
               Matching matching = Matching::by_name);

}  // namespace shardmark
