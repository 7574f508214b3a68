#pragma once
// A schedule is data: what every lane does, in order. The object that is printed, checked, simulated and executed is one and
// the same. Depends on base alone: no tensors, no MPI, no clock.
//
//   planner (coarse: chunks)  ->  refine (blocks)  ->  recompute -> bucket -> lower (communication)  ->  check  ->  execute
//
// A lane is a prologue, a body that repeats, and an epilogue. Ids in the prologue are absolute. Ids in the body are those of its
// first repetition: each later one adds `micros_per_window` to every micro-batch and `versions_per_window` to every version.
// Epilogue ids count from the moment the body stops, as if the body had run zero times; the executor shifts them likewise.
// A synchronous lane has an empty prologue and epilogue. An asynchronous lane at stage s of S holds w = S-1-s forwards in its
// prologue and the w matching backwards in its epilogue, so all lanes have forwarded equally many micro-batches at all times.

#include <cstdint>
#include <optional>
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
  recompute,        // chunk, micro, version: forward again, before its backward
  reduce,           // coarse mark: all gradients of the window are complete on this lane; lower() turns it into posts and waits
  fold,             // chunk, micro: the leaf gradients of this block and micro-batch join their sums
  post,             // token: start a group of messages or a collective
  wait,             // token
  tie,              // add the slots of tied weights, once
  decide,           // norm, clip, non-finite, learning rate: one decision for the update
  update            // coarse: all units of the lane to `version`; refined: chunk's units
};
std::string_view name(Do what);

struct Action {
  Do what = Do::forward;
  ChunkId chunk;
  MicroId micro;
  Version version;
  Token token;
  auto operator<=>(Action const&) const = default;
};

enum class Transfer : std::uint8_t { send, receive, collective };

/// What a token stands for. Postings with the same token form one group.
struct Posting {
  Token token;
  Transfer transfer = Transfer::send;
  // send and receive: the tensor that crosses the boundary in front of block `edge` (activation) or its gradient
  int peer = -1;  // lane
  ChunkId edge;
  bool gradient = false;
  MicroId micro;
  // collective: over the ranks that differ on `axes`
  Collective what = Collective::all_reduce;
  Axes axes = 0;
  BucketId bucket;
  std::string group;  // a named group (holders of a tied weight) instead of axes; empty: none
};

struct Lane {
  std::vector<Action> prologue, body, epilogue;
  std::vector<Posting> postings;
};

/// Gradients of one unit that one use site produces: unit and slot. A tied unit has one slot per use.
struct Segment {
  UnitId unit;
  int slot = 0;
  auto operator<=>(Segment const&) const = default;
};

/// Segments that are reduced together: consecutive in the order in which backward completes them.
struct Bucket {
  BucketId id;
  std::vector<Segment> segments;
  std::int64_t elements = 0;
};

/// What a schedule must know of one block; no tensors.
struct BlockShape {
  std::string name;
  std::vector<Segment> produces;       // gradient segments that its backward completes a leaf of
  std::vector<std::int64_t> elements;  // of each of those segments
  std::int64_t boundary_elements = 0;  // per sample, of its output
  double forward_cost = 1, input_cost = 1, weight_cost = 1;  // relative, for simulate and balance
};

struct Schedule {
  std::string name;
  std::vector<int> lane_of_chunk;  // coarse: chunk -> lane; refined: block -> lane
  std::vector<Lane> lanes;
  std::vector<std::vector<Bucket>> buckets;  // per lane, in backward order; empty before bucketing
  SumOrder sum;
  SumShape leaves;            // of each gradient segment in one update, on one replica (serial twins: replicas x micros)
  int micros_per_window = 1;  // forwards of one body
  int versions_per_window = 1;
  bool refined = false;
};

/// What a pipeline planner takes: no options, no tensors.
struct PipelineShape {
  int stages = 1;
  int micros = 1;
  int chunks_per_stage = 1;
};

/// One lane, `micros` micro-batches in ascending order, each forward then backward; reduce, update. `serial` and one replica of `ddp`.
Schedule plan_sequential(std::string name, int micros);

// ---- passes: each takes a schedule and returns the next one

/// From chunks to blocks. `first_block[c]..first_block[c+1]` are chunk c's blocks; every block exactly once.
/// Forward walks blocks upwards, backward downwards with a fold after each; update becomes decide + one update per block.
/// @throws Error when first_block isn't a partition.
Schedule refine(Schedule const& coarse, std::vector<BlockShape> const& blocks, std::vector<int> const& first_block);

struct BucketRule {
  std::int64_t cap_bytes = 25 << 20;
  std::int64_t first_cap_bytes = 1 << 20;  // the first bucket closes early, so that communication starts early
  bool last_alone = true;                  // the segment that completes last is a bucket of its own: it is the exposed one
  std::size_t element_bytes = 4;
};
/// Groups each lane's segments, in the order in which the last micro-batch's backward completes them.
Schedule bucket(Schedule refined, std::vector<BlockShape> const& blocks, BucketRule const& rule);

enum class Overlap : std::uint8_t { off, on };
/// Inserts communication. Between lanes: a receive is posted and waited for before the action that needs it, a send is posted
/// after the action that makes it and waited for before the same channel's next send or, for activations, before the micro-batch's
/// backward; nothing blocks that the checker can't prove to end. On `axes` (data): one all-reduce per bucket and window, posted after the fold that
/// completes it (Overlap::on) or all at the reduce mark (off), waited for before decide. `axes` = 0: no reduction.
/// `tied`: units with several slots on different lanes are exchanged among their holders after reduction.
Schedule lower(Schedule bucketed, std::vector<BlockShape> const& blocks, Axes axes, Overlap overlap);

}  // namespace shardmark
