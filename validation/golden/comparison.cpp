#include "validation/golden/comparison.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace shardmark::golden {
namespace {

constexpr double share = 1e-12;
constexpr double quotient_bound = 2.02;  // 1 + |m| / s
constexpr double u = std::numeric_limits<double>::epsilon() / 2;

double largest(Values const& values) {
  double out = 0;
  for (double x : values) out = std::max(out, std::abs(x));
  return out;
}

double largest_gradient(Rule rule, std::int64_t update, Golden const& golden) {
  double out = 0;
  for (auto const& [parameter, shape] : golden.shapes)
    out = std::max(out, largest(golden.tensors.at(key(rule, "gradient", update, parameter))));
  return out;
}

double adamw_tolerance(double weight, std::int64_t update) {
  OptimizerSettings const o = settings(Rule::adamw);
  double const rate = o.rate.base;
  return double(update) * (quotient_bound * rate / o.epsilon * 2 * share * o.clip_norm + 16 * u * (weight + rate));
}

class Comparing {
 public:
  explicit Comparing(Comparison& out) : out_(out) {}

  /// Element by element; one line for the worst element that differs. A NaN on either side differs.
  void take(std::string const& where, Values const& expected, Values const& found, double tolerance) {
    ++out_.tensors;
    if (expected.size() != found.size()) {
      out_.differences.push_back(fmt::format("{}: {} elements, PyTorch has {}", where, found.size(), expected.size()));
      return;
    }
    double worst = 0;
    std::size_t at = 0;
    for (std::size_t i = 0; i < expected.size(); ++i) {
      double const ratio = expected[i] == found[i] ? 0 : std::abs(expected[i] - found[i]) / tolerance;
      if (ratio <= worst) continue;
      worst = std::isnan(ratio) ? std::numeric_limits<double>::infinity() : ratio;
      at = i;
    }
    if (!(worst <= 1))
      out_.differences.push_back(fmt::format("{}[{}] is {:.17g}, PyTorch has {:.17g}: {:.2g} times the tolerance of {:.2g}", where, at,
                                             found[at], expected[at], worst, tolerance));
    if (worst <= out_.worst) return;
    out_.worst = worst;
    out_.worst_where = where;
  }

 private:
  Comparison& out_;
};

}  // namespace

Comparison compare(Case const& c, Rule rule, Golden const& golden, Trained const& trained) {
  Comparison out;
  Comparing comparing(out);
  Scalars const &expected = golden.scalars.at(rule), &found = trained.scalars;
  for (std::size_t i = 0; i < std::size_t(updates); ++i) {
    auto const scalar = [&](char const* what, Values const& theirs, Values const& ours) {
      comparing.take(fmt::format("{}.{}.{}", name(rule), what, i + 1), {theirs.at(i)}, {ours.at(i)}, share * std::abs(theirs.at(i)));
    };
    scalar("loss", expected.loss, found.loss);
    scalar("norm", expected.norm, found.norm);
    scalar("counted", expected.counted, found.counted);
  }
  auto const model = make_model(c);
  for (std::int64_t update : stored_updates)
    for (ParamSpec const& param : model->spec.params)
      for (char const* quantity : {"gradient", "weight"}) {
        std::string const where = key(rule, quantity, update, param.name);
        auto const theirs = golden.tensors.find(where), ours = trained.tensors.find(where);
        if (theirs == golden.tensors.end() || ours == trained.tensors.end()) {
          out.differences.push_back(where + " is missing");
          continue;
        }
        double const size = largest(theirs->second);
        bool const is_gradient = quantity == std::string_view("gradient");
        double const tolerance = is_gradient && param.null_gradient ? share * largest_gradient(rule, update, golden)
                                 : is_gradient || rule == Rule::sgd ? share * size
                                                                    : adamw_tolerance(size, update);
        comparing.take(where, theirs->second, ours->second, tolerance);
      }
  for (std::int64_t update : stored_updates)
    for (BufferSpec const& buffer : model->spec.buffers) {
      std::string const where = key(rule, "buffer", update, buffer.name);
      auto const theirs = golden.tensors.find(where), ours = trained.tensors.find(where);
      if (theirs == golden.tensors.end() || ours == trained.tensors.end())
        out.differences.push_back(where + " is missing");
      else
        comparing.take(where, theirs->second, ours->second, share * largest(theirs->second));
    }
  return out;
}

}  // namespace shardmark::golden
