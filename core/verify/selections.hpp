#pragma once
// What ReLU selects where rounding decides.
//
// A bound grows with the unit roundoff because errors pass through smooth functions. ReLU's gradient isn't smooth: an input x within its
// own error of 0 may be passed on by one implementation and not by another, and the gradient then differs by all of dy. In fp64 no input
// comes that near; in fp32 one of some million does. So inputs with
//
//   |x_i| <= 4 e_i       e_i: the largest deviation of this very element in the perturbed runs of envelope.hpp
//
// are undecided (one that isn't, and crosses 0 all the same, has to be near 0 and further off than four times what eight runs showed), and
// eight more runs in fp64 select each of them at random. Four times the largest deviation of an element in these runs is added to its bound
// in fp32. By element, since a selection reaches few (its own sample) or is diluted (sums).

#include <span>
#include <vector>

#include "backend/decorators/decorator.hpp"

namespace shardmark {

/// Every ReLU of a run's first step, in order.
struct Selections {
  struct Relu {
    std::vector<double> input;      // of the reference
    std::vector<double> deviation;  // largest of all perturbed runs, over the unit roundoff
  };
  std::vector<Relu> relus;

  /// Indices of the inputs of each ReLU that rounding with this unit can move across 0.
  std::vector<std::vector<std::int64_t>> undecided(double roundoff) const;
};

/// Around the reference run: keeps the inputs.
class KeepSelections final : public Decorator {
 public:
  KeepSelections(Backend& inner, Selections& out) : Decorator(inner), out_(out) {}
  void run(Stream& stream, Op const& op) override;

 private:
  Selections& out_;
};

/// Around a perturbed run: how far the inputs move.
class MeasureSelections final : public Decorator {
 public:
  MeasureSelections(Backend& inner, double roundoff, Selections& out) : Decorator(inner), roundoff_(roundoff), out_(out) {}
  void run(Stream& stream, Op const& op) override;

 private:
  double roundoff_;
  Selections& out_;
  std::size_t next_ = 0;
};

/// Selects undecided inputs at random: passed on as their magnitude, or 0.
class RandomSelections final : public Decorator {
 public:
  RandomSelections(Backend& inner, std::vector<std::vector<std::int64_t>> const& undecided, std::uint64_t seed)
      : Decorator(inner), undecided_(undecided), seed_(seed) {}
  void run(Stream& stream, Op const& op) override;

 private:
  std::vector<std::vector<std::int64_t>> const& undecided_;
  std::uint64_t seed_;
  std::size_t next_ = 0;
};

}  // namespace shardmark
