#pragma once
// Perturbed: fp64 operations whose outputs are moved as rounding in another type would move them (validation, "Bounds"):
//
//   y <- y +- u_store |y| +- sqrt(h) u_accumulate A      A and h from rounding.hpp, signs independent and reproducible
//
// Eight such runs give the error that rounding can explain. Losses are moved by the second term alone; statistics and gradients of
// weights (memory booked as gradients) use u_accumulate in the first too. An accumulated output moves by its new contribution.
// The fused bias + GELU is run as its two parts, so that the moved pre-activation goes through GELU.
// Where weights and data are cast to a narrower type before they are used, operations see w +- u_cast |w|: the same at every use of a
// weight in a run, while updates see the weight itself.

#include "backend/decorators/decorator.hpp"
#include "backend/decorators/dense.hpp"
#include "backend/decorators/rounding.hpp"

namespace shardmark {

struct Perturbation {
  double store = 0;       // unit roundoff of stored activations (2^-8 for bf16)
  double accumulate = 0;  // unit roundoff of the accumulator
  std::uint64_t seed = 0;
  double cast = 0;  // unit roundoff of the type that weights and data are cast to; 0: they are used as they are
};

class PerturbedBackend final : public Decorator {
 public:
  /// @param inner completes its work inside run(); outlives this.
  PerturbedBackend(Backend& inner, Perturbation perturbation) : Decorator(inner), by_(perturbation) {}
  void run(Stream& stream, Op const& op) override;
  /// Begins another run: the same operations then get signs of another seed.
  void restart(std::uint64_t seed) {
    by_.seed = seed;
    operations_ = 0;
    weights_.clear();
  }

 private:
  void run_whole(Stream& stream, Op const& op);
  void run_in_parts(Stream& stream, Matmul const& op);
  Dense cast_weight(Stream& stream, View const& weight);
  void move(Stream& stream, OutputRounding const& output, std::vector<double> const* before, std::uint32_t lane);

  Perturbation by_;
  std::uint64_t operations_ = 0;           // the stream of signs
  std::vector<std::byte const*> weights_;  // memory of weights, in the order in which it was first read
};

}  // namespace shardmark
