#include "verify/catalogue.hpp"

#include <algorithm>

namespace shardmark {
namespace {

std::int64_t product(std::vector<std::int64_t> const& shape) {
  std::int64_t n = 1;
  for (auto d : shape) n *= d;
  return n;
}

/// Rows of the twin's micro-batches in the first update: the nested split of validation rule 2, summed up.
std::vector<std::int64_t> first_rows(Job const& job) {
  std::int64_t const rows = std::min(job.global_batch, job.data->size());
  std::vector<std::int64_t> out{0};
  for (int r = 0; r < job.replicas; ++r)
    for (int k = 0; k < job.schedule.micros_per_update(); ++k)
      out.push_back(out.back() + piece_of(piece_of(rows, job.replicas, r).size(), job.micros, k).size());
  return out;
}

/// The block whose backward completes the gradient of a unit: the first of those that use it.
int last_in_backward(Model const& model, UnitId unit) {
  for (std::size_t b = 0; b < model.blocks.size(); ++b)
    for (Segment s : model.blocks[b].produces)
      if (s.unit == unit) return int(b);
  invariant(false, "no block makes the gradient of a unit");
  return 0;
}

}  // namespace

Catalogue::Catalogue(Job const& job, Scope scope) : first_row_(first_rows(job)) {
  Model const& model = *job.model;
  int const count = int(model.blocks.size());
  std::int64_t const rows = first_row_.back();
  for (Block const& block : model.blocks) blocks_.push_back(block.name);
  auto const backward_of = [&](int block) { return count + 1 + 2 * (count - 1 - block); };
  int const after = 4 * count;

  for (int b = 0; scope == Scope::full && b < count; ++b) {
    // The loss keeps its gradient in the memory of its output.
    bool const last = b + 1 == count;
    std::string const& name = blocks_[std::size_t(b)];
    std::int64_t const elements = rows * product(model.blocks[std::size_t(b)].boundary);
    add(TensorKind::output, b, {last ? "loss gradient of " + name : "output of " + name, name, TensorKind::output, b, elements, false});
    if (b == 0) continue;
    std::int64_t const inputs = rows * product(model.blocks[std::size_t(b - 1)].boundary);
    add(TensorKind::input_gradient, b, {"input gradient of " + name, name, TensorKind::input_gradient, backward_of(b) + 1, inputs, false});
  }
  add(TensorKind::loss, 0, {"loss", blocks_.back(), TensorKind::loss, count, 1, false});
  // Stages that decide by themselves know the norm of their own gradients alone.
  if (job.schedule.decides_jointly()) add(TensorKind::norm, 0, {"gradient norm", "update", TensorKind::norm, after, 1, false});
  for (std::size_t p = 0; p < model.spec.params.size(); ++p) {
    ParamSpec const& param = model.spec.params[p];
    int const block = last_in_backward(model, param.unit);
    std::string const& module = blocks_[std::size_t(block)];
    add(TensorKind::weight_gradient, int(p),
        {"gradient of " + param.name, module, TensorKind::weight_gradient, backward_of(block), param.elements(), param.null_gradient});
    add(TensorKind::updated_weight, int(p),
        {"updated " + param.name, module, TensorKind::updated_weight, after + 1, param.elements(), false});
  }
}

void Catalogue::add(TensorKind kind, int which, TensorInfo info) {
  keys_.push_back({kind, which});
  tensors_.push_back(std::move(info));
}

int Catalogue::find(TensorKind kind, int which) const {
  auto const at = std::find(keys_.begin(), keys_.end(), Key{kind, which});
  return at == keys_.end() ? -1 : int(at - keys_.begin());
}

int Catalogue::block(std::string_view module) const {
  auto const at = std::find(blocks_.begin(), blocks_.end(), module);
  expect(at != blocks_.end(), "an observed module is no block of the model");
  return int(at - blocks_.begin());
}

Range Catalogue::range_of(int tensor, int twin_micro) const {
  std::int64_t const per_row = first_row_.back() == 0 ? 0 : tensors_[std::size_t(tensor)].elements / first_row_.back();
  return {first_row_.at(std::size_t(twin_micro)) * per_row, first_row_.at(std::size_t(twin_micro) + 1) * per_row};
}

}  // namespace shardmark
