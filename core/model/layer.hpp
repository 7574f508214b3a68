#pragma once
// Layers and blocks. There is no tape: what a forward saves for its backward, and until which half of the backward it is needed, is
// visible, because memory is one of the things measured.

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "backend/backend.hpp"
#include "model/store.hpp"
#include "model/tensor_part.hpp"

namespace shardmark {

enum class Wanted : std::uint8_t { input = 1, weight = 2, both = 3 };
constexpr bool wants_input(Wanted w) { return (std::uint8_t(w) & 1) != 0; }
constexpr bool wants_weight(Wanted w) { return (std::uint8_t(w) & 2) != 0; }

/// Why a forward runs.
enum class Pass : std::uint8_t { train, recompute, evaluate };
/// Whether a forward moves the running statistics of batch normalisation, or gives what moves them at the end of the update. Only
/// Pass::train does, once for a micro-batch: a recomputation keeps them.
enum class Running : std::uint8_t { keep, update, defer };
/// Until which half of the backward a saved tensor is needed.
enum class Until : std::uint8_t { input, weight };

/// nothing: for a forward without a backward of its own (evaluation, a block that will be recomputed): what is saved is freed at once.
/// selective: what a layer can make again from the rest is left out, until complete().
enum class Keep : std::uint8_t { all, selective, nothing };
/// Whether Layer::complete() makes a saved tensor again from others that the layer saved.
enum class Again : std::uint8_t { never, possible };

/// Fixed slots for what a forward saves: one Stash per (block, micro-batch) in flight.
class Stash {
 public:
  explicit Stash(std::size_t slots, Keep keep = Keep::all) : slots_(slots), keep_(keep) {}
  void save(std::size_t slot, Tensor tensor, Until until, Again again = Again::never) {
    if (keep_ == Keep::all || (keep_ == Keep::selective && again == Again::never)) slots_.at(slot) = {std::move(tensor), until};
  }
  /// Of what is saved from here on.
  void restrict(Keep keep) { keep_ = keep; }
  Tensor const& operator[](std::size_t slot) const { return slots_.at(slot).first; }
  Tensor take(std::size_t slot) { return std::exchange(slots_.at(slot).first, {}); }
  /// After the input gradient: drops what only it needed. After the weight gradient: drops all.
  void drop(Until done);
  std::size_t size() const { return slots_.size(); }

 private:
  std::vector<std::pair<Tensor, Until>> slots_;
  Keep keep_;
};

/// Of data, a layer makes no input gradient.
enum class InputIs : std::uint8_t { data, activation };

/// One micro-batch on this rank's device. `rows` may be 0.
struct MicroBatch {
  MicroId id;
  std::int64_t rows = 0;
  Tensor input, target;
  Tensor samples;    // [rows,2] i64: (update, global sample id), the key of dropout
  Tensor tally;      // f64[3]: loss sum, counted, correct
  double scale = 1;  // 1 / (loss terms of the whole update); enters once, at the loss
  std::int64_t counted = 0, window_counted = 0;
};

/// Watches tensors as they are made: verify compares them, traces show them. kind: "output", "input gradient".
class Observer {
 public:
  virtual ~Observer() = default;
  virtual void see(MicroId micro, std::string_view module, std::string_view kind, View const& view) = 0;
};

class Pieces;
class TensorGroup;
class DeferredStatistics;

struct Context {
  Backend& ops;
  Stream& stream;
  Arena& arena;
  ParameterStore& store;
  Version version;
  MicroBatch const& micro;
  Pieces& pieces;       // of this micro-batch, whose statistics are merged
  TensorGroup& tensor;  // the parts into which layers are cut
  Pass pass = Pass::train;
  Running running = Running::keep;
  DeferredStatistics* deferred = nullptr;  // there with Running::defer
  std::uint64_t seed = 1;                  // of dropout
  Observer* observer = nullptr;

  Tensor make(DType dtype, std::initializer_list<std::int64_t> shape) const { return arena.make(dtype, shape, Book::activations, stream); }
  void run(Op const& op) const { ops.run(stream, op); }
};

/// A layer knows its parameters and its slots in the block's stash; groups of ranks come with the context, so that a model has no rank.
class Layer {
 public:
  virtual ~Layer() = default;
  /// Saves into its slots what backward needs. May overwrite `x` when it says so.
  virtual Tensor forward(Tensor x, Context& context, Stash& stash) = 0;
  /// @param dy  gradient of the output; absent for Wanted::weight alone, which uses what Wanted::input saved.
  /// @returns the gradient of the input; absent for Wanted::weight, and for a layer whose input is data.
  virtual Tensor backward(Tensor dy, Context& context, Stash& stash, Wanted wanted) = 0;
  /// Saves what a selective stash left out, with the bits of the forward. Layers that save nothing so, do nothing.
  virtual void complete(Context&, Stash&) {}
};

/// The unit of partition and of checkpointing. Its body leaves its input as it was: a recomputation starts from it.
struct Block {
  std::string name;
  std::unique_ptr<Layer> body;
  std::unique_ptr<Layer> merged;  // what comes after the pieces' statistics are merged (batch normalisation); absent: nothing is
  std::size_t slots = 0;
  std::vector<Segment> produces;       // gradient segments that its backward completes a leaf of
  std::vector<UnitId> reads;           // units whose weights it uses
  std::vector<std::int64_t> boundary;  // shape of its output for one sample; what crosses to the next block
  Slice cut = {};                      // of the output's last dimension, where a rank has a part of it
  std::int64_t full_width = 0;         // of that dimension in all, where it is cut
  TensorPart rows_of = {};             // whose rows the output has, where they are cut
  double forward_flops = 0;            // per sample
  double selective_flops = 0;          // of complete(), per sample
};

/// A chain of blocks. The first takes the micro-batch's input, the last makes the loss.
struct Model {
  ModelSpec spec;
  std::vector<Block> blocks;
  DType dtype = DType::f32;
  std::uint64_t seed = 1;

  std::vector<BlockShape> shapes() const;
  /// Segments of blocks [first, last) in the order in which backward completes them, each once.
  std::vector<Segment> backward_order(int first, int last) const;
  std::vector<UnitId> units_of(int first, int last) const;
};

/// Writes the initial weights of the units that `store` holds: a pure function of (seed, name, index in the full tensor).
void initialise(Model const& model, ParameterStore& store, Backend& ops, Stream& stream);
/// The initial values of one parameter's slice, rounded to fp32.
std::vector<double> initial_values(ParamSpec const& param, std::uint64_t seed);

}  // namespace shardmark
