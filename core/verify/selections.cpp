#include "verify/selections.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <limits>

namespace shardmark {
namespace {

/// Parities of the bits of a run. Any two columns take all four values in the eight runs; any three of the first four all eight.
constexpr std::array<unsigned, 7> columns{0b001, 0b010, 0b100, 0b111, 0b011, 0b101, 0b110};

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

Choice choice_of_run(int run) {
  return [run](std::int64_t k) {
    unsigned const bits_of_run = columns[std::size_t(k) % columns.size()];
    return std::popcount(unsigned(run) & bits_of_run) % 2 != 0;
  };
}

void ChosenSelections::run(Stream& stream, Op const& op) {
  auto const* relu = std::get_if<Relu>(&op);
  if (relu == nullptr) return inner().run(stream, op);
  std::vector<std::int64_t> const& near = undecided_.at(next_++);
  std::vector<double> selected;
  for (std::int64_t i : near) {
    double const magnitude = std::max(std::abs(relu->x.as<double>()[i]), std::numeric_limits<double>::min());
    selected.push_back(choice_(chosen_++) ? magnitude : 0);
  }
  inner().run(stream, op);
  for (std::size_t j = 0; j < near.size(); ++j) relu->y.as<double>()[near[j]] = selected[j];
}

}  // namespace shardmark
