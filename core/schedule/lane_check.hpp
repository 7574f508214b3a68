#pragma once
// What can be proven about one lane alone: its own order, versions, sums and tokens. Internal to core/schedule.
// check_lane() walks the lane; LaneOrder, LaneSums and LaneWeights hold what has happened so far, and reject what may not happen next.

#include <vector>

#include "schedule/unroll.hpp"

namespace shardmark {

/// What one lane works on. "Local" chunks and units are places in these lists.
struct LaneContents {
  LaneContents(Schedule const& schedule, std::vector<BlockShape> const& blocks, std::vector<TiedUnit> const& tied, int lane);
  /// units.size(): not on this lane.
  std::size_t place_of(UnitId unit) const;

  std::vector<int> chunks;                              // ascending
  std::vector<std::size_t> local;                       // chunk -> local chunk; meaningless for another lane's
  std::vector<UnitId> units;                            // ascending; empty in a coarse schedule
  std::vector<TiedUnit const*> tied;                    // of each local unit; nullptr: one slot
  std::vector<std::vector<std::size_t>> units_of;       // [local chunk] -> local units
  std::vector<std::vector<std::size_t>> chunks_of;      // [local unit] -> local chunks that produce a slot of it
  std::vector<std::vector<std::size_t>> bucket_chunks;  // [bucket] -> local chunks that produce a segment in it
  std::vector<std::vector<std::size_t>> chunk_buckets;  // [local chunk] -> buckets
};

/// Forwards and backwards of every chunk and micro-batch, and the data that they need from other lanes.
class LaneOrder {
 public:
  LaneOrder(Unrolled const& unrolled, LaneContents const& contents, int lane);
  /// `latest`: the newest version that all units of the chunk have.
  void forward(Step const& step, int latest);
  void recompute(Step const& step);
  void backward_input(Step const& step);
  void backward_weight(Step const& step);
  void message_posted(Step const& step, Posting const& posting);
  void message_complete(Step const& step, Posting const& posting);
  bool weight_gradients_made(std::size_t local_chunk, MicroId micro) const;
  void finish() const;

 private:
  enum Fact : std::uint16_t {
    forwarded = 1,
    input_kept = 2,  // for a recomputation
    input_done = 4,
    weight_done = 8,
    activation_posted = 16,
    activation_here = 32,
    gradient_posted = 64,
    gradient_here = 128,
    activation_sent = 256,
    gradient_sent = 512,
    stash_whole = 1024,
    stash_selective = 2048
  };
  struct Cell {
    std::uint16_t facts = 0;
    Version version;  // of its forward
  };
  Cell& cell(int chunk, MicroId micro);
  bool elsewhere(int chunk) const { return unrolled_.lane_of(chunk) != lane_; }
  void require(bool good, Step const& step, std::string_view problem) const;
  void once(Step const& step, Cell& cell, Fact fact, std::string_view problem) const;
  void require_same_version(Step const& step, Cell const& cell) const;
  void complete(Step const& step, Cell& cell) const;
  void keep(Cell& cell, Kept kept) const;

  Unrolled const& unrolled_;
  LaneContents const& contents_;
  int lane_;
  bool lowered_;
  Weights weights_;
  std::vector<Cell> cells_;            // [local chunk][micro]
  std::vector<Version> last_version_;  // [local chunk]: of its latest forward
  Action before_{.what = Do::update};  // the latest forward, backward or recomputation
};

/// Leaves, reductions, ties and updates.
class LaneSums {
 public:
  LaneSums(Unrolled const& unrolled, LaneContents const& contents, int lane);
  int latest(std::size_t local_chunk) const;
  /// A leaf joins its sum: fold, or in a coarse schedule the weight gradient itself.
  void leaf(Step const& step);
  void mark(Step const& step);
  void reduction_posted(Step const& step, Posting const& posting, LaneOrder const& order);
  void reduction_complete(Step const& step, Posting const& posting);
  void tie(Step const& step);
  void decide(Step const& step);
  void update(Step const& step);
  void finish() const;

 private:
  bool complete(std::size_t local_chunk, int update) const;
  std::string first_incomplete(std::vector<std::size_t> const& local_chunks, int update) const;
  std::string first_untied(int update, bool only_counted_here) const;
  void require_all_reduced(Step const& step, int update) const;
  void exchange_posted(Step const& step, Posting const& posting);
  void part_given(Step const& step, Posting const& posting);
  void bucket_posted(Step const& step, std::size_t bucket, MicroId micro, LaneOrder const& order);
  std::size_t leaf_cell(std::size_t bucket, MicroId micro) const;
  void require(bool good, Step const& step, std::string_view problem) const;

  Unrolled const& unrolled_;
  LaneContents const& contents_;
  int lane_;
  Form form_;
  bool reduces_ = false;      // over other ranks
  bool every_micro_ = false;  // reduces leaves, before they are folded
  bool defers_ = false;
  int leaves_per_update_ = 1;
  int decided_ = 0;                       // coarse: updates
  int marks_ = 0;                         // reduce marks seen
  int given_ = 0, taken_ = 0;             // deferred decisions: exchanges posted, complete
  std::vector<char> folded_;              // [local chunk][micro]
  std::vector<int> leaves_;               // [local chunk], over all updates
  std::vector<int> posted_, reduced_;     // [bucket]: updates reduced
  std::vector<char> leaf_reduced_;        // [bucket][micro]: 1 posted, 2 complete
  std::vector<int> versions_;             // [local unit]
  std::vector<int> ties_;                 // [local unit]: updates tied
  std::vector<int> offered_, exchanges_;  // [local unit]: updates whose slots are on their way, exchanged
};

/// Makes weights whole that ranks share.
inline bool gathers_weights(Posting const& posting) {
  return posting.transfer == Transfer::collective && posting.group.empty() && posting.unit.valid();
}

/// Where shared weights are whole (Schedule::sharing): what a block uses must be, and nothing is gathered twice.
class LaneWeights {
 public:
  LaneWeights(Unrolled const& unrolled, LaneContents const& contents, int lane);
  void use(Step const& step) const;
  void update(Step const& step);
  void gather_posted(Step const& step, Posting const& posting);
  void gather_complete(Posting const& posting);
  void release(Step const& step);
  void finish() const;

 private:
  enum class State : std::uint8_t { whole, coming, in_pieces };
  std::size_t unit_of(Step const& step, UnitId unit) const;
  void require(bool good, Step const& step, std::string_view problem) const;

  LaneContents const& contents_;
  int lane_;
  Sharing sharing_;
  Axes axes_;
  std::vector<State> units_;  // as contents.units
};

/// Walks the lane. @throws BadSchedule
void check_lane(Unrolled const& unrolled, LaneContents const& contents, int lane);

/// Of a lane that check_lane() let pass.
LaneFacts measure_lane(Unrolled const& unrolled, LaneContents const& contents, int lane);

}  // namespace shardmark
