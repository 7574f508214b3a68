#pragma once
// The one executor: runs one lane of a schedule. It knows actions, not strategies. A dry run is the same object on the meta backend
// with recording communicators.

#include <span>
#include <vector>

#include "comm/mesh.hpp"
#include "data/dataset.hpp"
#include "model/deferred.hpp"
#include "model/layer.hpp"
#include "model/pieces.hpp"
#include "model/tensor_group.hpp"
#include "run/in_flight.hpp"
#include "run/settings.hpp"
#include "run/shared_norms.hpp"
#include "run/updates_under_way.hpp"
#include "schedule/recompute.hpp"

namespace shardmark {

/// Where micro-batches come from: the loader, or shapes alone in a dry run.
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  virtual HostBatch const& next() = 0;
};

class Program;

/// Watches or disturbs the run between actions: status board, traces, injected faults.
class Hook {
 public:
  virtual ~Hook() = default;
  virtual void before(Program&, Action const&, std::int64_t /*window*/) {}
  virtual void after(Program&, Action const&, std::int64_t /*window*/) {}
  /// A micro-batch was read; `batch` is valid during the call.
  virtual void read(Program&, HostBatch const& /*batch*/) {}
};

/// Whether values exist: a dry run has shapes only.
enum class Values : std::uint8_t { real, none };

struct ProgramParts {
  Model const& model;
  Schedule const& schedule;  // lowered and checked; `model`, `schedule` and `mesh` outlive the program
  int lane = 0;
  Backend& ops;
  Arena& arena;
  Mesh& mesh;
  BatchSource& batches;
  SampleShape samples;
  OptimizerSettings optimizer;
  Reduction reduction = Reduction::fixed_tree;
  BatchNormPolicy batch_norm = BatchNormPolicy::per_micro;
  int abreast = 1;       // replicas that a serial twin plays side by side, block by block, so that their statistics can be merged
  int tensor_parts = 1;  // that a serial twin plays in each layer, so that sums over them come to the same bits
  Values values = Values::real;
  Observer* observer = nullptr;
  std::vector<Hook*> hooks = {};
  std::int64_t updates_before = 0;  // made by earlier runs that this one goes on from; `batches` begin behind them
};

/// What one window (update) came to; the same on every rank.
struct WindowResult {
  std::int64_t update = 0;  // 1-based
  double loss = 0;          // per counted term
  std::int64_t counted = 0;
  double norm = 0;  // of the gradient, before clipping; decisions by lane: of this stage's part
  double rate = 0;
  bool skipped = false;  // a value that isn't finite on any rank
  bool stop = false;     // some rank was asked to stop
};

class Program {
 public:
  explicit Program(ProgramParts parts);
  ~Program();
  Program(Program const&) = delete;

  /// Runs until `windows` more windows of micro-batches have been forwarded; asynchronous lanes stay in flight. The first windows after a
  /// drain fill an asynchronous pipeline: it forwards as many as it is deep, and later calls run fewer.
  void advance(std::int64_t windows);
  /// Finishes what is in flight: before a checkpoint, an evaluation, a verdict.
  void drain();

  /// Makes replicas equal: by data rank 0's weights, or, where they are shared, by the pieces of their owners.
  void make_replicas_equal();
  /// Forward only, through all stages, with rank 0's running statistics; collective over pipeline and replicas. A pipeline's ranks give the
  /// same batch. Returns {loss sum, counted,
  /// correct} on the rank with the last block, zeros elsewhere.
  std::array<double, 3> evaluate(HostBatch const& batch);

  /// From the next decision on, every rank's last().stop is set: all ranks stop after the same window.
  void ask_to_stop() { stop_asked_ = true; }

  WindowResult const& last() const { return last_; }
  /// Decided since the run began, those of earlier programs that this one goes on from included.
  std::int64_t updates() const { return window_; }
  /// Whether results have the loss. With decisions by lane only the last stage knows it, and each stage has a norm of its own.
  bool sees_loss() const;
  /// Results of all windows since construction or clear_history().
  std::vector<WindowResult> const& history() const { return history_; }
  void clear_history() { history_.clear(); }
  void reserve_history(std::size_t windows) { history_.reserve(history_.size() + windows); }
  ParameterStore& store() { return store_; }
  Stream& stream() { return *compute_; }
  ProgramParts const& parts() const { return parts_; }
  int peak_stashes() const { return stashes_.peak(); }
  /// Updates whose gradients were held at once, complete or not.
  int peak_gradients() const { return peak_gradients_; }
  /// Reductions of gradients posted since construction.
  std::int64_t reductions_posted() const { return reductions_; }
  /// Seconds in which this rank waited for communication (host clock, around waits).
  double waiting_seconds() const { return waiting_seconds_ + tensor_->waiting_seconds(); }
  /// Seconds in which it agreed with the others on an update, and waited for the last of them.
  double deciding_seconds() const { return deciding_seconds_; }
  /// Of all weights that replicas have in common, bit for bit: masters, or where those are shared, the weights in the compute type,
  /// gathered for it where they are kept in pieces. Collective over the replicas.
  std::uint64_t weights_hash();
  /// Of those that are copies on every rank of the tensor-parallel group.
  std::uint64_t copies_hash();

 private:
  struct Live {  // a micro-batch on the device, until its last backward on this lane
    MicroBatch batch;
    int blocks_left = 0;
  };
  struct Halfway {  // between the two halves of a block that merges statistics
    Action action;
    Tensor tensor;
  };
  void run(Section section, std::int64_t repetition);
  void begin_behind(std::int64_t updates);
  int leaf_of(MicroId micro) const;
  std::int64_t update_of(Action const& action) const;
  void act(Action const& action, std::int64_t repetition);
  void forward(Action const& action);
  void put_output(Action const& action, Tensor y);
  void recompute(Action const& action);
  void complete_stash(Action const& action);
  void backward(Action const& action, Wanted wanted);
  void finish_backward(Action const& action, Wanted wanted, Tensor dy);
  void broadcast_buffers();
  Running running(MicroId micro, Pass pass) const;
  Version backward_version(Action const& action) const;
  void fold(Action const& action);
  void spoil_leaf(Segment segment, MicroId micro);
  void rescale(Segment segment);
  void post(Token token, std::int64_t repetition);
  void wait(Token token);
  Request post_collective(Posting const& posting);
  Request post_sum(Posting const& posting);
  Request post_gather(Posting const& posting);
  Request post_to_root(Posting const& posting);
  void sum_at_root(Token token);
  Request post_from_root(UnitId unit, Axes over);
  void keep_old_weights(UnitId unit);
  void update_received(Token token);
  Request post_tied(Posting const& posting);
  Request post_part();
  void take_part();
  Request post_messages(std::span<Posting const> group, std::int64_t repetition);
  void reverse_sends(MicroId micro);
  void tie(UnitId unit);
  void decide();
  void update(UnitId unit, Version to);
  void shift_shard(View& gradient) const;
  Live& micro(MicroId id);
  double loss_scale(HostBatch const& host) const;
  MicroBatch upload(HostBatch const& host, MicroId id);
  void finish_block(MicroId id);
  Context context(MicroBatch const& batch, Version version, Pass pass);
  Block const& block(ChunkId id) const { return parts_.model.blocks[std::size_t(id.v)]; }
  /// Messages of one direction and boundary keep their order; boundaries and directions are told apart by channel.
  int channel_of(Posting const& posting) const;
  Tensor boundary_tensor(ChunkId edge, std::int64_t rows);
  void cross(Direction direction, ChunkId edge, Tensor const& tensor);
  void reduce_tally();
  void take_norms();
  void take_norm_of_parts(ParamId param, View const& gradient);
  void add_norms_of_parts();
  bool has_sums() const;
  void gather_units(std::vector<UnitId> const& units);
  void leave_tied_copies_out();
  void exchange_totals();
  void sum_up_totals();
  void all_sum(Axes over, Tensor const& tensor);
  void conclude_window();
  template <class Wanted>
  std::uint64_t hash_of(Wanted&& wanted);

  ProgramParts parts_;
  std::unique_ptr<Stream> compute_, data_;
  Lane const& lane_;
  ParameterStore store_;
  std::vector<ChunkId> blocks_;  // of this lane
  Boundaries boundaries_;
  Stashes stashes_;
  OpenRequests requests_;
  std::span<Action const> from_here_;  // the running section from the running action on, unshifted
  std::vector<Live> micros_;
  std::unique_ptr<Pieces> pieces_;
  std::unique_ptr<TensorGroup> tensor_;
  std::unique_ptr<SharedNorms> shared_norms_;     // absent: this rank has the whole sums
  std::unique_ptr<DeferredStatistics> deferred_;  // absent: running statistics move at once
  std::vector<Halfway> halfway_;
  std::vector<std::pair<UnitId, Tensor>> tied_;  // slots that are fetched for a tie, in order of posting
  std::unique_ptr<UpdatesUnderWay> under_way_;   // absent: no decision is deferred
  struct Gathered {                              // on rank 0, with Sharing::root
    Token token;
    Tensor all, sum;  // the bucket of every rank; this rank's own, which becomes their sum
  };
  std::vector<Gathered> gathered_;
  Tensor stale_;  // of a fault
  std::vector<Message> messages_;
  std::vector<View> slots_;  // scratch of tie()
  Tensor tallies_, spare_tally_, totals_, scalars_, leaves_, norms_, norm_squared_;
  CanonicalTree tally_tree_;
  std::int64_t micro_base_ = 0, version_base_ = 0, bodies_ = 0, loaded_ = 0, window_ = 0;
  std::int64_t forwarded_ = 0, asked_ = 0;         // micro-batches since the last drain
  std::array<std::int64_t, 64> window_counted_{};  // of the windows in flight, by index modulo 64
  bool in_flight_ = false, stop_asked_ = false;
  int peak_gradients_ = 1;
  std::int64_t reductions_ = 0;
  double waiting_seconds_ = 0, deciding_seconds_ = 0;
  WindowResult last_;
  std::vector<WindowResult> history_;
};

}  // namespace shardmark
