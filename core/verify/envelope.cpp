#include "verify/envelope.hpp"

#include <algorithm>
#include <cmath>

#include "backend/decorators/absolute.hpp"
#include "backend/decorators/perturbed.hpp"
#include "comm/fabric.hpp"

namespace shardmark {
namespace {

/// Looks at the decision before it is made: its totals carry the magnitudes of loss and norm, which the executor keeps to itself.
class DecisionTap final : public Decorator {
 public:
  explicit DecisionTap(AbsoluteBackend& absolute) : Decorator(static_cast<Backend&>(absolute)), absolute_(absolute) {}
  void run(Stream& stream, Op const& op) override {
    if (auto const* decide = std::get_if<Decide>(&op)) look(*decide);
    inner().run(stream, op);
  }
  float loss_spread() const { return loss_; }
  float norm_spread() const { return norm_; }

 private:
  void look(Decide const& decide) {
    double const* const totals = decide.totals.as<double>();
    double const sum = of(slice(decide.totals, 0, 0, 1));
    loss_ = float(sum / totals[1]);
    // norm = sqrt(s), so its error is that of s over 2 norm.
    double const norm = std::sqrt(*decide.norm_squared.as<double>());
    norm_ = norm > 0 ? float(of(decide.norm_squared) / (2 * norm)) : 0;
  }
  double of(View const& view) const {
    auto const known = absolute_.lookup(view);
    invariant(known.has_value(), "nothing is known of the rounding of a total");
    return std::sqrt(known->terms) * known->absolute.front();
  }

  AbsoluteBackend& absolute_;
  float loss_ = 0, norm_ = 0;
};

class Record final : public Sink {
 public:
  Record(Catalogue const& catalogue, AbsoluteBackend const& absolute, DecisionTap const& tap, OptimizerSettings const& optimizer,
         Envelope& out)
      : catalogue_(catalogue), absolute_(absolute), tap_(tap), optimizer_(optimizer), out_(out) {}

  void take(Piece const& piece) override {
    TensorEnvelope& tensor = out_[std::size_t(piece.tensor)];
    if (tensor.reference.empty()) {
      tensor.reference.resize(std::size_t(catalogue_[piece.tensor].elements));
      tensor.spread.resize(tensor.reference.size());
    }
    expect(piece.values.elements() == piece.range.size(), "the reference makes a tensor of another size");
    float* const spread = tensor.spread.data() + piece.range.begin;
    each_value(piece.values, [&](std::int64_t i, double x) { tensor.reference[std::size_t(piece.range.begin + i)] = x; });
    write_spread(piece, spread);
  }

 private:
  void write_spread(Piece const& piece, float* spread) const {
    switch (catalogue_[piece.tensor].kind) {
      case TensorKind::loss:
        *spread = tap_.loss_spread();
        return;
      case TensorKind::norm:
        *spread = tap_.norm_spread();
        return;
      case TensorKind::updated_weight:
        return update_spread(piece, spread);
      default:
        break;
    }
    if (auto const known = absolute_.lookup(piece.values)) {
      double const root = std::sqrt(std::max(1.0, known->terms));
      for (std::size_t i = 0; i < known->absolute.size(); ++i) spread[i] = float(root * known->absolute[i]);
    } else {
      // Selected, not computed (ReLU): what it was selected from is in the deviation, and it was stored once.
      each_value(piece.values, [&](std::int64_t i, double x) { spread[i] = float(std::abs(x)); });
    }
  }

  /// w' = w - lr (clip g + decay w): four roundings, of the sum and of the terms of the step; lr and clip are rounded too.
  void update_spread(Piece const& piece, float* spread) const {
    double const shrink = optimizer_.rate.at(0) * optimizer_.weight_decay;
    double const* const before = piece.before.as<double>();
    each_value(piece.values, [&](std::int64_t i, double after) {
      spread[i] = float(2 * (std::abs(after) + 4 * std::abs(after - before[i]) + 4 * shrink * std::abs(before[i])));
    });
  }

  Catalogue const& catalogue_;
  AbsoluteBackend const& absolute_;
  DecisionTap const& tap_;
  OptimizerSettings const& optimizer_;
  Envelope& out_;
};

/// Largest |perturbed - reference| of each tensor; NaN stays.
class Deviate final : public Sink {
 public:
  Deviate(Envelope const& envelope, std::vector<double>& most) : envelope_(envelope), most_(most) {}
  void take(Piece const& piece) override {
    double& most = most_[std::size_t(piece.tensor)];
    double const* const reference = envelope_[std::size_t(piece.tensor)].reference.data() + piece.range.begin;
    each_value(piece.values, [&](std::int64_t i, double x) {
      double const d = std::abs(x - reference[i]);
      if (!(d <= most)) most = d;
    });
  }

 private:
  Envelope const& envelope_;
  std::vector<double>& most_;
};

void run_first_step(EnvelopeParts const& parts, Backend& ops, Sink& sink) {
  auto const self = make_self();
  Capture capture(parts.catalogue, {0, parts.catalogue.micros()}, sink);
  BeatHook beat(parts.beat);
  Rig rig(parts.twin, {.ops = ops, .world = *self, .observer = &capture, .hooks = {&capture, &beat}});
  rig.program().advance(1);
  rig.program().drain();
}

}  // namespace

Envelope make_envelope(EnvelopeParts const& parts, Assembly& ranks) {
  Envelope out(parts.catalogue.tensors().size());
  {
    auto const inner = parts.backend();
    AbsoluteBackend absolute(*inner);
    DecisionTap tap(absolute);
    Record record(parts.catalogue, absolute, tap, parts.twin.optimizer, out);
    run_first_step(parts, tap, record);
  }
  std::vector<double> most(out.size(), 0.0);
  for (int run = ranks.rank(); run < envelope_runs; run += ranks.ranks()) {
    auto const inner = parts.backend();
    PerturbedBackend perturbed(*inner, {.store = parts.roundoff, .accumulate = parts.roundoff, .seed = std::uint64_t(run) + 1});
    Deviate deviate(out, most);
    run_first_step(parts, perturbed, deviate);
  }
  ranks.maximum(most);
  for (std::size_t t = 0; t < out.size(); ++t) {
    out[t].deviation = most[t] / parts.roundoff;
    for (double x : out[t].reference) out[t].largest = std::max(out[t].largest, std::abs(x));
    for (float s : out[t].spread) out[t].largest_spread = std::max(out[t].largest_spread, double(s));
  }
  return out;
}

}  // namespace shardmark
