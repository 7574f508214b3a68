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
// eight more runs in fp64 select each of them both ways. Four times the largest deviation of an element in these runs is added to its
// bound in fp32. By element, since a selection reaches few (its own sample) or is diluted (sums).
//
// What two selections do to an element may cancel, so runs that always select two inputs alike would miss both. The runs are therefore a
// two-level factorial design (Box, Hunter and Hunter 2005, chapter 6): any two of seven undecided inputs in a row, counted over all ReLUs,
// are selected in all four ways, any three of the first four in all eight. Of more than seven some go alike: the factor is for them.

#include <functional>
#include <span>
#include <utility>
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

/// Whether the k-th undecided input is passed on; k counts over all ReLUs.
using Choice = std::function<bool(std::int64_t k)>;
constexpr int selection_runs = 8;
/// What run 0 to 7 of the design chooses.
Choice choice_of_run(int run);

/// Selects undecided inputs by choice: passed on as their magnitude, or 0.
class ChosenSelections final : public Decorator {
 public:
  ChosenSelections(Backend& inner, std::vector<std::vector<std::int64_t>> const& undecided, Choice choice)
      : Decorator(inner), undecided_(undecided), choice_(std::move(choice)) {}
  void run(Stream& stream, Op const& op) override;

 private:
  std::vector<std::vector<std::int64_t>> const& undecided_;
  Choice choice_;
  std::size_t next_ = 0;
  std::int64_t chosen_ = 0;
};

}  // namespace shardmark
