#pragma once
// Gradients of single micro-batches, and their sums in orders that the executor never takes. Every sum and product is rounded to the
// type of accumulation: two numbers of that type are added in fp64 and rounded once, which gives the same bits as adding them in it.

#include <vector>

#include "run/program.hpp"

namespace shardmark {

/// By segment (unit and slot) in the order of Gradients::order(), or by unit once the slots of each are added.
using BySegment = std::vector<std::vector<double>>;
using ByUnit = std::vector<std::vector<double>>;

/// The gradient of one micro-batch, scaled like the sum: one over the terms of the whole window.
struct Leaf {
  BySegment gradient;
  std::int64_t counted = 0;  // loss terms
};

/// Keeps the leaves of one window as they are when they join their sum. Under Fold::tree, of a program with one lane.
class LeafRecorder final : public Hook {
 public:
  explicit LeafRecorder(std::int64_t window) : window_(window) {}
  void read(Program& program, HostBatch const& batch) override;
  void before(Program& program, Action const& action, std::int64_t window) override;
  std::vector<Leaf> take() { return std::move(leaves_); }

 private:
  Leaf& leaf(Program& program, std::size_t index);

  std::int64_t window_;
  std::size_t read_ = 0;
  std::vector<Leaf> leaves_;
};

/// The sum that a program holds after its decision, by unit.
ByUnit gradient_of(Program& program);

class LeafSums {
 public:
  /// @param order  segments of a leaf
  LeafSums(DType type, ModelSpec const& spec, std::vector<Segment> order, std::vector<Leaf> leaves);
  /// Whether leaves that have terms have equally many.
  bool even() const;

  /// The canonical tree.
  ByUnit tree() const;
  /// ((g0 + g1) + g2) + ...
  ByUnit loop() const;
  /// A ring all-reduce's: each tensor in as many pieces as leaves; the sum of piece c begins at leaf c + 1 and ends at c.
  ByUnit ring() const;
  /// Each leaf divided by its own count, their sum by their number. Empty leaves are left out.
  ByUnit mean_of_means() const;
  /// Clipped after each leaf that joins the sum, as when clipping stands inside the loop over micro-batches.
  ByUnit clipped_each_time(double largest_norm) const;

  /// The gradient times `factor`, rounded.
  ByUnit scaled(ByUnit gradient, double factor) const;
  /// Clipped once, as the update does it.
  ByUnit clipped(ByUnit gradient, double largest_norm) const;

 private:
  double rounded(double x) const { return type_ == DType::f64 ? x : double(float(x)); }
  void add(BySegment& into, BySegment const& from) const;
  void scale(BySegment& gradient, double factor) const;
  ByUnit finish(BySegment const& sum) const;

  DType type_;
  std::size_t units_;
  std::vector<Segment> order_;
  std::vector<Leaf> leaves_;
};

/// In fp64; 1 when nothing is clipped (validation rule 13).
double clip_factor(ByUnit const& gradient, double largest_norm);
double norm_of(ByUnit const& gradient);

/// How far a gradient is from another.
struct Deviation {
  std::int64_t differ = 0, of = 0;  // elements
  double relative = 0;              // the largest |a - b| of a tensor over its largest |b|, of all tensors that aren't zero by identity
  bool operator==(Deviation const&) const = default;
};
Deviation deviation(ByUnit const& gradient, ByUnit const& reference, ModelSpec const& spec);

}  // namespace shardmark
