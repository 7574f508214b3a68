#pragma once
// Absolute: runs fp64 operations and keeps, beside every number that arithmetic made, what bounds its rounding (A and h, see
// rounding.hpp). Sums of results carry their terms' A on, so a weight gradient summed over micro-batches and replicas knows the
// contraction over all of them.

#include <optional>
#include <vector>

#include "backend/decorators/decorator.hpp"
#include "backend/decorators/rounding.hpp"
#include "backend/decorators/shadow.hpp"

namespace shardmark {

class AbsoluteBackend final : public Decorator {
 public:
  struct Magnitude {
    std::vector<double> absolute;  // A, row-major
    double terms = 0;              // h, the largest of the elements'
  };

  /// @param inner completes its work inside run(), in fp64; outlives this.
  explicit AbsoluteBackend(Backend& inner) : Decorator(inner) {}
  void run(Stream& stream, Op const& op) override;

  /// What was kept for the view's memory: any slice or reshape of outputs. nullopt unless every element has an entry: never
  /// computed, moved by hand, or overwritten by an operation that doesn't round.
  std::optional<Magnitude> lookup(View const& view) const;
  void clear() { shadow_.clear(); }

 private:
  std::vector<OutputRounding> carried(Op const& op, Stream& stream) const;
  OutputRounding carried_sum(SumTree const& op, Stream& stream) const;

  Shadow shadow_;
};

}  // namespace shardmark
