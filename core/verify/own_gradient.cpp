#include "verify/own_gradient.hpp"

#include <algorithm>
#include <array>
#include <cmath>

namespace shardmark {
namespace {

std::vector<double> values_of(View const& view) {
  std::vector<double> out(std::size_t(view.elements()));
  each_value(view, [&](std::int64_t i, double x) { out[std::size_t(i)] = x; });
  return out;
}

View view_of(std::span<double> values) {
  std::int64_t const n = std::int64_t(values.size());
  return view_at(reinterpret_cast<std::byte*>(values.data()), nullptr, DType::f64, Shape{&n, 1});
}

bool applies(Program& program, Action const& action) {
  return makes_first_version(action, Do::update) && program.parts().optimizer.rule == Rule::adamw;
}

}  // namespace

void OwnGradientRule::before(Program& program, Action const& action, std::int64_t) {
  if (!applies(program, action)) return;
  program.stream().synchronize();
  UnitSpec const& unit = program.store().spec()[action.unit];
  weight_ = values_of(program.store().own(Part::master, action.unit, Version{0}));
  gradient_ = values_of(gradient_total(program, action.unit));
  Range const own = program.store().own_range(action.unit);
  expected_update(program, std::clamp<std::int64_t>(unit.decaying - own.begin, 0, own.size()));
}

void OwnGradientRule::expected_update(Program& program, std::int64_t decaying) {
  OptimizerSettings const& o = program.parts().optimizer;
  std::vector<double> first(weight_.size()), second(weight_.size());
  std::array<double, scalars> decision{};
  decision[std::size_t(Scalar::learning_rate)] = o.rate.at(0);
  decision[std::size_t(Scalar::clip)] = o.clip_norm > 0 ? std::min(1.0, o.clip_norm / (program.last().norm + 1e-6)) : 1;
  decision[std::size_t(Scalar::skip)] = program.last().skipped ? 1 : 0;
  decision[std::size_t(Scalar::update)] = 1;
  expected_.resize(weight_.size());
  ops_.run(*stream_, AdamWUpdate{.weight = view_of(weight_),
                                 .gradient = view_of(gradient_),
                                 .first = view_of(first),
                                 .second = view_of(second),
                                 .out = view_of(expected_),
                                 .compute = {},
                                 .scalars = view_of(decision),
                                 .beta1 = o.beta1,
                                 .beta2 = o.beta2,
                                 .epsilon = o.epsilon,
                                 .decay = o.weight_decay,
                                 .decay_from = 0,
                                 .decay_to = decaying});
  stream_->synchronize();
}

void OwnGradientRule::after(Program& program, Action const& action, std::int64_t) {
  if (!applies(program, action)) return;
  program.stream().synchronize();
  View const now = program.store().own(Part::master, action.unit, Version{1});
  Range const where = program.store().own_range(action.unit);
  double const u = 16 * unit_roundoff(now.dtype), rate = program.parts().optimizer.rate.at(0);
  ModelSpec const& spec = program.store().spec();
  for (ParamId id : spec[action.unit].params) {
    std::size_t const tensor = std::size_t(catalogue_.find(TensorKind::updated_weight, id.v));
    Finding& finding = out_.findings[tensor];
    bool moved = false;
    SliceLayout const layout = spec[id].layout();
    OwnPart const part = own_part(now, where, spec[id]);
    each_value(part.values, [&](std::int64_t i, double x) {
      std::int64_t const in_param = part.range.begin + i;
      std::size_t const at = std::size_t(spec[id].offset + in_param - where.begin);
      double const bound = u * (std::abs(weight_[at]) + rate);
      finding.compare(x, expected_[at], bound, layout(in_param));
      moved = moved || x != weight_[at];
      out_.largest[tensor] = std::max(out_.largest[tensor], std::abs(expected_[at]));
      out_.largest_bound[tensor] = std::max(out_.largest_bound[tensor], bound);
    });
    finding.not_updated = moved || part.range.size() == 0 ? 0 : 1;
  }
}

}  // namespace shardmark
