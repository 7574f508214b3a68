#pragma once
// The parameter store: weights by (parameter, version), optimizer state, gradients. PipeDream's versions, ZeRO's pieces, buckets and
// bf16 copies are one mechanism: flat units, equal shards, and versions that live as long as a micro-batch in flight needs them.

#include <utility>
#include <vector>

#include "model/gradients.hpp"
#include "model/shards.hpp"
#include "model/spec.hpp"

namespace shardmark {

enum class Part : std::uint8_t { compute, master, state0, state1 };

struct StoreConfig {
  DType compute = DType::f32;  // type in which weights take part in operations; master weights have its accumulator's type
  int states = 0;              // optimizer state tensors per weight: 0, 1 or 2
  Shards shards = {};          // what of it this rank holds
  int retained = 0;            // versions behind the latest that later forwards still use (vertical sync, 2BW)
  int updates = 1;             // whose gradients are held at once (deferred decisions)
};

/// A parameter's part of what a rank updates of its unit: where it lies in the parameter, and its values.
struct OwnPart {
  Range range;
  View values;
};
/// @param own  the rank's part of the unit, whose flat range is `where`
OwnPart own_part(View const& own, Range where, ParamSpec const& param);

class ParameterStore {
 public:
  /// @param held  units of this rank, each once
  ParameterStore(ModelSpec const& spec, std::vector<UnitId> held, std::vector<Segment> const& backward_order, SumOrder sum, SumShape leaves,
                 StoreConfig config, Arena& arena, Backend& ops, Stream& stream);

  ModelSpec const& spec() const { return spec_; }
  std::vector<UnitId> const& held() const { return held_; }
  StoreConfig const& config() const { return config_; }
  /// Those of the update that turn_to() named last.
  Gradients& gradients() { return gradients_[current_]; }
  Gradients const& gradients() const { return gradients_[current_]; }
  void turn_to(std::int64_t update) { current_ = std::size_t(update) % gradients_.size(); }

  /// A weight in the compute type. @throws Error when that version is not resident.
  View weight(ParamId param, Version version) const { return weights(param, 1, version); }
  /// `count` adjacent parameters of equal row length, stacked: q, k and v as one [3H,H] matrix.
  View weights(ParamId first, int count, Version version) const;
  /// Where the leaf gradient of a parameter (or adjacent ones) is computed, for use site `slot`.
  View gradient(ParamId first, int count, int slot) const;
  Write gradient_write(ParamId param, int slot) const { return gradients().write({spec_[param].unit, slot}); }

  /// The unit as one segment, with padding, where this rank holds all of it: weights that aren't kept in pieces, or are gathered;
  /// masters and states when nothing is shared. States ignore the version.
  View flat(Part part, UnitId unit, Version version) const;
  /// What this rank updates of the unit: all of it, or its piece without padding.
  Range own_range(UnitId unit) const { return config_.shards.own(spec_[unit].elements); }
  View own(Part part, UnitId unit, Version version) const;
  /// The same with padding: equally long on all ranks.
  View piece(Part part, UnitId unit, Version version) const;

  /// The two ends of the all-gather that makes the latest weights of a unit whole: this rank's piece, and room for all of them (with
  /// Sharing::parameters made here, and given back by drop_gathered()).
  struct Gather {
    Tensor piece, whole;
  };
  Gather gather(UnitId unit, Stream& stream);
  void drop_gathered(UnitId unit);

  /// A buffer's numbers (accumulator's type) or counter (i64). They have no versions: there is one of each.
  View buffer(BufferId id) const;
  /// All buffers that this rank holds, as bytes; absent when there are none.
  Tensor const& buffers() const { return buffers_; }

  /// Room for version `to`: the old buffer when nothing in flight or to come needs the old version, else a new one.
  void publish(UnitId unit, Version to, Stream& stream);
  /// A micro-batch in flight needs (unit, version); the last release of a version that isn't retained frees it.
  void pin(UnitId unit, Version version);
  void release(UnitId unit, Version version);
  Version latest(UnitId unit) const;
  /// Versions of `unit` that are resident now.
  int resident(UnitId unit) const;
  /// The most versions of one unit that were resident at once.
  int peak_resident() const { return peak_resident_; }
  /// After a checkpoint was loaded: what is resident is `version`.
  void relabel(UnitId unit, Version version);

 private:
  struct Resident {
    Version version;
    // master is compute itself unless the compute type is narrower; both are this rank's piece when weights are cut, and the master
    // when anything is shared
    Tensor compute, master;
    int pins = 0;
  };
  struct Unit {
    std::int64_t padded = 0, piece = 0;
    std::vector<Resident> versions;  // oldest first; the last is the latest
    std::vector<Resident> spare;     // buffers of pruned versions, for those to come: their places never change once the pipeline is full
    Tensor state0, state1;
    Tensor gathered;  // the whole unit, while a block uses it
  };
  Unit const& unit(UnitId id) const;
  Unit& unit(UnitId id) { return const_cast<Unit&>(std::as_const(*this).unit(id)); }
  Resident const& find(UnitId id, Version version) const;
  Resident& find(UnitId id, Version version) { return const_cast<Resident&>(std::as_const(*this).find(id, version)); }
  void prune(Unit& unit);
  void make_buffers(Backend& ops, Stream& stream);
  Resident make_version(Unit& unit, Version version, Book book, Stream& stream);

  ModelSpec const& spec_;
  std::vector<UnitId> held_;
  StoreConfig config_;
  Arena& arena_;
  std::vector<Unit> units_;           // as held_
  std::vector<Gradients> gradients_;  // a ring of updates
  std::size_t current_ = 0;
  Tensor buffers_;
  std::vector<std::int64_t> buffer_at_;  // byte of each buffer of the model; -1: another rank's
  int peak_resident_ = 1;
};

}  // namespace shardmark
