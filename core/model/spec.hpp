#pragma once
// What a model's parameters are: names, full shapes, the slice that this rank holds, and the units they lie in.

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "base/ids.hpp"
#include "base/types.hpp"
#include "schedule/schedule.hpp"

namespace shardmark {

/// How a parameter starts; a pure function of (seed, name, index in the full tensor), rounded to fp32.
struct Initial {
  enum class Kind : std::uint8_t { zero, one, normal, uniform };
  Kind kind = Kind::zero;
  double scale = 0;  // standard deviation, or the half-width of the uniform
  double mean = 0;
};

/// A piece of the full tensor along one dimension; dim < 0: all of it, nowhere cut. A serial twin's slices are whole and name the dimension
/// along which its ranks cut.
struct Slice {
  int dim = -1;
  std::int64_t begin = 0, end = 0;
};

/// Where the elements of a slice lie in the full tensor, both row-major: runs of `run` elements, `stride` apart.
struct SliceLayout {
  std::int64_t first = 0, run = 1, stride = 1;
  std::int64_t operator()(std::int64_t i) const { return first + i / run * stride + i % run; }
  /// Of a full tensor of `full` elements, those in the slice.
  std::int64_t elements(std::int64_t full) const { return full / stride * run; }
};
SliceLayout slice_layout(Slice slice, std::vector<std::int64_t> const& full);

struct ParamSpec {
  std::string name;  // as PyTorch would call it
  std::vector<std::int64_t> full;
  Slice slice;
  UnitId unit;
  std::int64_t offset = 0;          // in the unit, elements
  std::vector<std::int64_t> shape;  // of the slice
  Axes replicated = 0;              // axes on which this is a copy: counted once in norms
  bool decays = true;               // weight decay by role: matrices decay, norms and biases don't
  bool null_gradient = false;  // zero by identity: rounding alone makes it differ from 0 (the bias of keys, as softmax ignores a shift)
  Initial initial;
  std::int64_t elements() const {
    std::int64_t n = 1;
    for (auto d : shape) n *= d;
    return n;
  }
  SliceLayout layout() const { return slice_layout(slice, full); }
};

using BufferId = Id<struct BufferTag>;

/// What training moves without a gradient: running statistics, in the accumulator's type, and counters, i64.
struct BufferSpec {
  enum class Holds : std::uint8_t { numbers, counter };
  std::string name;  // as PyTorch would call it
  UnitId unit;       // whose holders hold it
  std::vector<std::int64_t> shape;
  Holds holds = Holds::numbers;
  double initial = 0;
  std::int64_t elements() const {
    std::int64_t n = 1;
    for (auto d : shape) n *= d;
    return n;
  }
  DType type(DType compute) const { return holds == Holds::counter ? DType::i64 : accumulator(compute); }
};

/// Running statistics of one batch normalisation.
struct RunningBuffers {
  BufferId mean, variance, batches;
};

/// One flat segment of parameters. Those that decay come first, so that an update is one operation with one range that decays.
struct UnitSpec {
  std::string name;
  std::vector<ParamId> params;
  std::int64_t elements = 0;
  std::int64_t decaying = 0;  // elements [0, decaying) decay
  int slots = 1;              // gradient slots: one per use of a tied weight
};

struct ModelSpec {
  std::vector<ParamSpec> params;  // canonical order: the order of norms
  std::vector<UnitSpec> units;
  std::vector<BufferSpec> buffers;      // canonical order
  std::vector<RunningBuffers> running;  // those of batch normalisation, among `buffers`

  ParamSpec const& operator[](ParamId id) const { return params[std::size_t(id.v)]; }
  UnitSpec const& operator[](UnitId id) const { return units[std::size_t(id.v)]; }
  BufferSpec const& operator[](BufferId id) const { return buffers[std::size_t(id.v)]; }
  std::int64_t elements() const;

  /// A new, empty unit.
  UnitId add_unit(std::string name, int slots = 1);
  BufferId add_buffer(BufferSpec buffer);
  /// Running statistics of `width` channels, from mean 0 and variance 1.
  RunningBuffers add_running(UnitId unit, std::string const& name, std::int64_t width);
  /// Adds a parameter behind the unit's others. @pre decaying ones come first.
  ParamId add(UnitId unit, std::string name, std::vector<std::int64_t> full, Initial initial, bool decays, Slice slice = {});
};

}  // namespace shardmark
