#include "verify/envelope.hpp"

#include <algorithm>
#include <cmath>

#include "backend/decorators/absolute.hpp"
#include "backend/decorators/perturbed.hpp"
#include "comm/fabric.hpp"
#include "verify/selections.hpp"

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

/// What perturbed runs came to, by tensor.
struct Deviations {
  std::vector<double> most;     // largest |perturbed - reference|; NaN stays
  std::vector<double> factors;  // sum over runs of (c - 1)^2
};

/// Compares one perturbed run with the reference.
class Deviate final : public Sink {
 public:
  Deviate(Envelope const& envelope, Deviations& out) : envelope_(envelope), out_(out) {}
  void take(Piece const& piece) override {
    double& most = out_.most[std::size_t(piece.tensor)];
    double const* const reference = envelope_[std::size_t(piece.tensor)].reference.data() + piece.range.begin;
    double cr = 0, rr = 0;
    each_value(piece.values, [&](std::int64_t i, double x) {
      double const d = std::abs(x - reference[i]);
      if (!(d <= most)) most = d;
      cr += x * reference[i];
      rr += reference[i] * reference[i];
    });
    // A weight's gradient comes in one piece; the factors of other tensors aren't used.
    if (rr > 0) out_.factors[std::size_t(piece.tensor)] += (cr / rr - 1) * (cr / rr - 1);
  }

 private:
  Envelope const& envelope_;
  Deviations& out_;
};

/// The same for each element.
class DeviateEach final : public Sink {
 public:
  DeviateEach(Envelope const& envelope, std::vector<std::vector<double>>& most) : envelope_(envelope), most_(most) {}
  void take(Piece const& piece) override {
    double* const most = most_[std::size_t(piece.tensor)].data() + piece.range.begin;
    double const* const reference = envelope_[std::size_t(piece.tensor)].reference.data() + piece.range.begin;
    each_value(piece.values, [&](std::int64_t i, double x) { most[i] = std::max(most[i], std::abs(x - reference[i])); });
  }

 private:
  Envelope const& envelope_;
  std::vector<std::vector<double>>& most_;
};

void run_first_step(EnvelopeParts const& parts, Backend& ops, Sink& sink) {
  auto const self = make_self();
  Capture capture(parts.catalogue, *parts.twin.model, {0, parts.catalogue.micros()}, sink);
  BeatHook beat(parts.beat);
  Rig rig(parts.twin, {.ops = ops, .world = *self, .observer = &capture, .hooks = {&capture, &beat}});
  rig.program().advance(1);
  rig.program().drain();
}

/// The perturbed runs, spread over the ranks.
Deviations deviate(EnvelopeParts const& parts, Envelope const& envelope, Perturbation by, Selections& selections, Assembly& ranks) {
  Deviations out{std::vector<double>(envelope.size()), std::vector<double>(envelope.size())};
  for (int run = ranks.rank(); run < envelope_runs; run += ranks.ranks()) {
    auto const inner = parts.backend();
    by.seed = std::uint64_t(run) + 1;
    PerturbedBackend perturbed(*inner, by);
    Deviate sink(envelope, out);
    MeasureSelections measure(perturbed, by.accumulate, selections);
    run_first_step(parts, measure, sink);
  }
  ranks.maximum(out.most);
  ranks.sum(out.factors);
  return out;
}

/// As of e_T: eight selections needn't contain the worst one.
constexpr double selection_subsets = 4;

/// What selections of undecided inputs do to each tensor.
void add_selections(EnvelopeParts const& parts, Selections& selections, Assembly& ranks, Envelope& out) {
  for (Selections::Relu& relu : selections.relus)
    if (!relu.deviation.empty()) ranks.maximum(relu.deviation);
  auto const undecided = selections.undecided(parts.selection_roundoff);
  if (std::all_of(undecided.begin(), undecided.end(), [](auto const& near) { return near.empty(); })) return;
  std::vector<std::vector<double>> most;
  for (TensorEnvelope const& tensor : out) most.emplace_back(tensor.reference.size(), 0.0);
  for (int run = ranks.rank(); run < selection_runs; run += ranks.ranks()) {
    auto const inner = parts.backend();
    ChosenSelections chosen(*inner, undecided, choice_of_run(run));
    DeviateEach sink(out, most);
    run_first_step(parts, chosen, sink);
  }
  for (std::size_t t = 0; t < out.size(); ++t) {
    ranks.maximum(most[t]);
    for (double& m : most[t]) {
      m *= selection_subsets;
      out[t].mean_selected += m / double(most[t].size());
    }
    out[t].selected = std::move(most[t]);
  }
}

}  // namespace

Envelope make_envelope(EnvelopeParts const& parts, Assembly& ranks) {
  Envelope out(parts.catalogue.tensors().size());
  Selections selections;
  {
    auto const inner = parts.backend();
    AbsoluteBackend absolute(*inner);
    DecisionTap tap(absolute);
    Record record(parts.catalogue, absolute, tap, parts.twin.optimizer, out);
    KeepSelections keep(tap, selections);
    run_first_step(parts, keep, record);
  }
  auto const narrow = std::count(parts.types.begin(), parts.types.end(), DType::bf16);
  if (std::size_t(narrow) < parts.types.size()) {
    Deviations const of = deviate(parts, out, {.store = parts.roundoff, .accumulate = parts.roundoff}, selections, ranks);
    for (std::size_t t = 0; t < out.size(); ++t) out[t].deviation = of.most[t] / parts.roundoff;
    if (std::count(parts.types.begin(), parts.types.end(), DType::f32) > 0) add_selections(parts, selections, ranks, out);
  }
  if (narrow > 0) {
    double const store = unit_roundoff(DType::bf16), sums = unit_roundoff(accumulator(DType::bf16));
    Deviations const of = deviate(parts, out, {.store = store, .accumulate = sums, .cast = store}, selections, ranks);
    for (std::size_t t = 0; t < out.size(); ++t) {
      out[t].bfloat16_deviation = of.most[t] / sums;
      TensorInfo const& info = parts.catalogue[int(t)];
      if (info.kind == TensorKind::weight_gradient && !info.null_gradient)
        out[t].bfloat16_factor = 8 * std::sqrt(of.factors[t] / envelope_runs);
    }
  }
  for (std::size_t t = 0; t < out.size(); ++t) {
    for (double x : out[t].reference) out[t].largest = std::max(out[t].largest, std::abs(x));
    for (float s : out[t].spread) out[t].largest_spread = std::max(out[t].largest_spread, double(s));
  }
  return out;
}

}  // namespace shardmark
