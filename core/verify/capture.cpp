#include "verify/capture.hpp"

#include <algorithm>
#include <cstring>

namespace shardmark {

View gradient_total(Program& program, UnitId unit) {
  Gradients const& gradients = program.store().gradients();
  return gradients.own(gradients.summed(unit));
}

View part_of(View const& flat, ParamSpec const& param) { return slice(flat, 0, param.offset, param.offset + param.elements()); }

namespace {

/// Of a block's output for one micro-batch, what this rank has: some columns, some rows, or all.
SliceLayout layout_of(Block const& maker, Range all) {
  if (maker.rows_of.rows == TokenRows::whole) return slice_layout(maker.cut, {maker.full_width});
  std::int64_t const run = all.size() / maker.rows_of.parts;
  return {.first = run * maker.rows_of.part, .run = std::max<std::int64_t>(1, run), .stride = std::max<std::int64_t>(1, all.size())};
}

}  // namespace

void Capture::see(MicroId micro, std::string_view module, std::string_view kind, View const& view) {
  if (micro.v >= micros_.count) return;
  TensorKind const what = kind == "output" ? TensorKind::output : TensorKind::input_gradient;
  int const block = catalogue_.block(module), tensor = catalogue_.find(what, block);
  if (tensor < 0) return;
  // A block's input is the output of the one before it.
  Block const& maker = model_.blocks[std::size_t(what == TensorKind::output ? block : block - 1)];
  Range const range = catalogue_.range_of(tensor, micros_.first + micro.v);
  sink_.take({tensor, range, layout_of(maker, range), view});
}

void Capture::before(Program& program, Action const& action, std::int64_t) {
  if (makes_first_version(action, Do::decide)) gradients(program);
  if (!makes_first_version(action, Do::update) || program.parts().optimizer.rule != Rule::sgd) return;
  program.stream().synchronize();
  View const weights = program.store().own(Part::master, action.unit, Version{0});
  old_.assign(weights.data, weights.data + weights.bytes());
}

void Capture::after(Program& program, Action const& action, std::int64_t) {
  if (makes_first_version(action, Do::decide)) {
    if (program.sees_loss()) scalar(TensorKind::loss, program.last().loss);
    scalar(TensorKind::norm, program.last().norm);
  }
  if (makes_first_version(action, Do::update) && !old_.empty()) updated(program, action.unit);
}

void Capture::gradients(Program& program) {
  program.stream().synchronize();
  ModelSpec const& spec = program.store().spec();
  for (UnitId unit : program.store().held())
    for (ParamId id : spec[unit].params) {
      int const tensor = catalogue_.find(TensorKind::weight_gradient, id.v);
      sink_.take(piece(tensor, spec[id], own_part(gradient_total(program, unit), program.store().own_range(unit), spec[id])));
    }
}

/// Of a parameter as the model has it: what this rank has of it is a run of its elements, or a slice.
Piece Capture::piece(int tensor, ParamSpec const& param, OwnPart const& part) const {
  if (part.range.size() == param.elements()) return {tensor, catalogue_.whole(tensor), param.layout(), part.values};
  expect(param.slice.dim < 0, "pieces of a slice");
  return {tensor, part.range, {}, part.values};
}

void Capture::scalar(TensorKind kind, double value) {
  int const tensor = catalogue_.find(kind);
  if (tensor < 0) return;
  std::int64_t const one = 1;
  sink_.take({tensor, {0, 1}, {}, view_at(reinterpret_cast<std::byte*>(&value), nullptr, DType::f64, Shape{&one, 1})});
}

void Capture::updated(Program& program, UnitId unit) {
  program.stream().synchronize();
  ModelSpec const& spec = program.store().spec();
  View const now = program.store().own(Part::master, unit, Version{1});
  View const old = view_at(old_.data(), nullptr, now.dtype, now.dims());
  Range const where = program.store().own_range(unit);
  for (ParamId id : spec[unit].params) {
    int const tensor = catalogue_.find(TensorKind::updated_weight, id.v);
    Piece made = piece(tensor, spec[id], own_part(now, where, spec[id]));
    made.before = own_part(old, where, spec[id]).values;
    sink_.take(made);
  }
}

}  // namespace shardmark
