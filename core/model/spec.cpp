#include "model/spec.hpp"

#include "base/error.hpp"

namespace shardmark {

SliceLayout slice_layout(Slice slice, std::vector<std::int64_t> const& full) {
  if (slice.dim < 0) return {};
  std::int64_t inner = 1;  // elements behind one step of the sliced dimension
  for (std::size_t d = std::size_t(slice.dim) + 1; d < full.size(); ++d) inner *= full[d];
  return {slice.begin * inner, (slice.end - slice.begin) * inner, full[std::size_t(slice.dim)] * inner};
}

std::int64_t ModelSpec::elements() const {
  std::int64_t n = 0;
  for (auto const& unit : units) n += unit.elements;
  return n;
}

UnitId ModelSpec::add_unit(std::string name, int slots) {
  units.push_back({.name = std::move(name), .params = {}, .slots = slots});
  return UnitId{std::int32_t(units.size()) - 1};
}

BufferId ModelSpec::add_buffer(BufferSpec buffer) {
  buffers.push_back(std::move(buffer));
  return BufferId{std::int32_t(buffers.size()) - 1};
}

RunningBuffers ModelSpec::add_running(UnitId unit, std::string const& name, std::int64_t width) {
  RunningBuffers out;
  out.mean = add_buffer({.name = name + ".running_mean", .unit = unit, .shape = {width}});
  out.variance = add_buffer({.name = name + ".running_var", .unit = unit, .shape = {width}, .initial = 1});
  out.batches = add_buffer({.name = name + ".num_batches_tracked", .unit = unit, .shape = {1}, .holds = BufferSpec::Holds::counter});
  running.push_back(out);
  return out;
}

ParamId ModelSpec::add(UnitId unit, std::string name, std::vector<std::int64_t> full, Initial initial, bool decays, Slice slice) {
  UnitSpec& home = units[std::size_t(unit.v)];
  expect(!decays || home.decaying == home.elements, "parameters that decay come first in their unit");
  ParamSpec param{.name = std::move(name),
                  .full = full,
                  .slice = slice,
                  .unit = unit,
                  .offset = home.elements,
                  .shape = full,
                  .replicated = 0,
                  .decays = decays,
                  .initial = initial};
  if (slice.dim >= 0) param.shape[std::size_t(slice.dim)] = slice.end - slice.begin;
  ParamId const id{std::int32_t(params.size())};
  home.params.push_back(id);
  home.elements += param.elements();
  if (decays) home.decaying = home.elements;
  params.push_back(std::move(param));
  return id;
}

}  // namespace shardmark
