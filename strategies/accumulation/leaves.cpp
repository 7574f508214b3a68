#include "strategies/accumulation/leaves.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

#include "verify/capture.hpp"

namespace shardmark {
namespace {

std::vector<double> doubles_of(View const& view) {
  std::vector<double> out(static_cast<std::size_t>(view.elements()));
  each_value(view, [&](std::int64_t i, double x) { out[std::size_t(i)] = x; });
  return out;
}

/// -0 differs from 0, and a NaN from nothing that has its bits.
bool same_bits(double a, double b) { return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b); }

}  // namespace

Leaf& LeafRecorder::leaf(Program& program, std::size_t index) {
  if (leaves_.empty()) leaves_.resize(std::size_t(program.parts().schedule.micros_per_update()));
  return leaves_[index];
}

void LeafRecorder::read(Program& program, HostBatch const& batch) {
  if (batch.update == window_) leaf(program, read_++).counted = batch.counted;
}

void LeafRecorder::before(Program& program, Action const& action, std::int64_t window) {
  if (window != window_ || action.what != Do::fold) return;
  program.stream().synchronize();
  ProgramParts const& parts = program.parts();
  Gradients const& gradients = program.store().gradients();
  BySegment& gradient = leaf(program, std::size_t(action.micro.v % parts.schedule.micros_per_update())).gradient;
  gradient.resize(gradients.order().size());
  for (Segment segment : parts.model.blocks[std::size_t(action.chunk.v)].produces) {
    auto const at = std::find(gradients.order().begin(), gradients.order().end(), segment) - gradients.order().begin();
    gradient[std::size_t(at)] = doubles_of(gradients.leaf(segment));
  }
}

ByUnit gradient_of(Program& program) {
  program.stream().synchronize();
  ByUnit out;
  std::size_t const units = program.store().spec().units.size();
  for (std::size_t u = 0; u < units; ++u) out.push_back(doubles_of(gradient_total(program, UnitId{std::int32_t(u)})));
  return out;
}

LeafSums::LeafSums(DType type, ModelSpec const& spec, std::vector<Segment> order, std::vector<Leaf> leaves)
    : type_(type), units_(spec.units.size()), order_(std::move(order)), leaves_(std::move(leaves)) {
  expect(!leaves_.empty(), "a sum has a leaf");
  for (Leaf const& leaf : leaves_) expect(leaf.gradient.size() == order_.size(), "every leaf has every segment");
}

void LeafSums::add(BySegment& into, BySegment const& from) const {
  for (std::size_t s = 0; s < into.size(); ++s)
    for (std::size_t i = 0; i < into[s].size(); ++i) into[s][i] = rounded(into[s][i] + from[s][i]);
}

void LeafSums::scale(BySegment& gradient, double factor) const {
  for (auto& segment : gradient)
    for (double& x : segment) x = rounded(x * rounded(factor));
}

/// Slots in ascending order (validation rule 6).
ByUnit LeafSums::finish(BySegment const& sum) const {
  std::vector<std::size_t> ascending(order_.size());
  for (std::size_t s = 0; s < ascending.size(); ++s) ascending[s] = s;
  std::sort(ascending.begin(), ascending.end(), [&](std::size_t a, std::size_t b) { return order_[a] < order_[b]; });
  ByUnit out(units_);
  for (std::size_t s : ascending) {
    std::vector<double>& unit = out[std::size_t(order_[s].unit.v)];
    if (order_[s].slot == 0)
      unit = sum[s];
    else
      for (std::size_t i = 0; i < unit.size(); ++i) unit[i] = rounded(unit[i] + sum[s][i]);
  }
  return out;
}

ByUnit LeafSums::tree() const {
  std::vector<BySegment> nodes;
  for (Leaf const& leaf : leaves_) nodes.push_back(leaf.gradient);
  CanonicalTree tree({1, int(leaves_.size())});
  for (int k = 0; k < int(leaves_.size()); ++k)
    tree.arrive(k, [&](int into, int from) { add(nodes[std::size_t(into)], nodes[std::size_t(from)]); });
  return finish(nodes.front());
}

ByUnit LeafSums::loop() const {
  BySegment sum = leaves_.front().gradient;
  for (std::size_t k = 1; k < leaves_.size(); ++k) add(sum, leaves_[k].gradient);
  return finish(sum);
}

ByUnit LeafSums::ring() const {
  int const n = int(leaves_.size());
  BySegment sum = leaves_.front().gradient;
  for (std::size_t s = 0; s < sum.size(); ++s)
    for (int piece = 0; piece < n; ++piece) {
      Range const range = piece_of(std::int64_t(sum[s].size()), n, piece);
      for (auto i = std::size_t(range.begin); i < std::size_t(range.end); ++i) {
        double total = leaves_[std::size_t((piece + 1) % n)].gradient[s][i];
        for (int hop = 2; hop <= n; ++hop) total = rounded(total + leaves_[std::size_t((piece + hop) % n)].gradient[s][i]);
        sum[s][i] = total;
      }
    }
  return finish(sum);
}

ByUnit LeafSums::mean_of_means() const {
  std::int64_t window = 0, filled = 0;
  for (Leaf const& leaf : leaves_) window += leaf.counted, filled += leaf.counted > 0 ? 1 : 0;
  expect(filled > 0, "a window without loss terms has no mean");
  BySegment sum;
  for (Leaf const& leaf : leaves_) {
    if (leaf.counted == 0) continue;
    BySegment mean = leaf.gradient;
    scale(mean, double(window) / (double(leaf.counted) * double(filled)));
    if (sum.empty())
      sum = std::move(mean);
    else
      add(sum, mean);
  }
  return finish(sum);
}

bool LeafSums::even() const {
  std::int64_t const most = std::ranges::max_element(leaves_, {}, &Leaf::counted)->counted;
  return std::ranges::all_of(leaves_, [&](Leaf const& leaf) { return leaf.counted == 0 || leaf.counted == most; });
}

ByUnit LeafSums::clipped_each_time(double largest_norm) const {
  BySegment sum;
  for (Leaf const& leaf : leaves_) {
    if (sum.empty())
      sum = leaf.gradient;
    else
      add(sum, leaf.gradient);
    scale(sum, clip_factor(finish(sum), largest_norm));
  }
  return finish(sum);
}

ByUnit LeafSums::scaled(ByUnit gradient, double factor) const {
  scale(gradient, factor);
  return gradient;
}

ByUnit LeafSums::clipped(ByUnit gradient, double largest_norm) const {
  double const factor = clip_factor(gradient, largest_norm);
  return scaled(std::move(gradient), factor);
}

double norm_of(ByUnit const& gradient) {
  double squares = 0;
  for (auto const& unit : gradient)
    for (double x : unit) squares += x * x;
  return std::sqrt(squares);
}

double clip_factor(ByUnit const& gradient, double largest_norm) {
  constexpr double epsilon = 1e-6;
  return std::min(1.0, largest_norm / (norm_of(gradient) + epsilon));
}

Deviation deviation(ByUnit const& gradient, ByUnit const& reference, ModelSpec const& spec) {
  Deviation out;
  for (ParamSpec const& param : spec.params) {
    auto const unit = std::size_t(param.unit.v), begin = std::size_t(param.offset), end = begin + std::size_t(param.elements());
    double error = 0, largest = 0;
    for (std::size_t i = begin; i < end; ++i) {
      double const a = gradient[unit][i], b = reference[unit][i];
      if (!same_bits(a, b)) ++out.differ;
      error = std::max(error, std::abs(a - b));
      largest = std::max(largest, std::abs(b));
    }
    out.of += param.elements();
    if (!param.null_gradient && largest > 0) out.relative = std::max(out.relative, error / largest);
  }
  return out;
}

}  // namespace shardmark
