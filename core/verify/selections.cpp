#include "verify/selections.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/random.hpp"

namespace shardmark {
namespace {

std::span<double const> values_of(View const& view) {
  expect(view.contiguous(), "ReLU works on whole tensors");
  return {view.as<double>(), std::size_t(view.elements())};
}

}  // namespace

std::vector<std::vector<std::int64_t>> Selections::undecided(double roundoff) const {
  std::vector<std::vector<std::int64_t>> out;
  for (Relu const& relu : relus) {
    std::vector<std::int64_t>& near = out.emplace_back();
    for (std::size_t i = 0; i < relu.input.size(); ++i)
      if (std::abs(relu.input[i]) <= 4 * roundoff * relu.deviation[i]) near.push_back(std::int64_t(i));
  }
  return out;
}

void KeepSelections::run(Stream& stream, Op const& op) {
  if (auto const* relu = std::get_if<Relu>(&op)) {
    auto const x = values_of(relu->x);
    Selections::Relu& kept = out_.relus.emplace_back();
    kept.input.assign(x.begin(), x.end());
    kept.deviation.assign(x.size(), 0);
  }
  inner().run(stream, op);
}

void MeasureSelections::run(Stream& stream, Op const& op) {
  if (auto const* relu = std::get_if<Relu>(&op)) {
    auto const x = values_of(relu->x);
    Selections::Relu& known = out_.relus.at(next_++);
    for (std::size_t i = 0; i < x.size(); ++i)
      known.deviation[i] = std::max(known.deviation[i], std::abs(x[i] - known.input[i]) / roundoff_);
  }
  inner().run(stream, op);
}

void RandomSelections::run(Stream& stream, Op const& op) {
  auto const* relu = std::get_if<Relu>(&op);
  if (relu == nullptr) return inner().run(stream, op);
  std::vector<std::int64_t> const& near = undecided_.at(next_);
  std::vector<double> chosen;
  // An odd seed selects the opposite of the even one before it: in two such runs every input has gone both ways.
  Randoms const random(seed_ / 2, Purpose::perturbation, next_++);
  for (std::size_t k = 0; k < near.size(); ++k) {
    double const magnitude = std::max(std::abs(relu->x.as<double>()[near[k]]), std::numeric_limits<double>::min());
    chosen.push_back(random.below(2, k) == seed_ % 2 ? magnitude : 0);
  }
  inner().run(stream, op);
  for (std::size_t k = 0; k < near.size(); ++k) relu->y.as<double>()[near[k]] = chosen[k];
}

}  // namespace shardmark
