#include "run/checkpoint/program_state.hpp"

#include <algorithm>
#include <array>

namespace shardmark {
namespace {

struct Moment {
  Part part;
  char const* suffix;
};

std::vector<Moment> moments_of(OptimizerSettings const& optimizer) {
  if (optimizer.rule == Rule::adamw) return {{Part::state0, ".exp_avg"}, {Part::state1, ".exp_avg_sq"}};
  if (optimizer.states() > 0) return {{Part::state0, ".momentum_buffer"}};
  return {};
}

}  // namespace

StoredState stored_state(Model const& model, OptimizerSettings const& optimizer) {
  StoredState out;
  DType const master = accumulator(model.dtype);
  for (ParamSpec const& param : model.spec.params) {
    out.weights.push_back({param.name, master, param.full});
    for (Moment const& moment : moments_of(optimizer)) out.moments.push_back({param.name + moment.suffix, master, param.full});
  }
  for (BufferSpec const& buffer : model.spec.buffers) out.weights.push_back({buffer.name, buffer.type(model.dtype), buffer.shape});
  return out;
}

HeldState held_state(Program& program) {
  ParameterStore& store = program.store();
  expect(store.config().shards == 1, "optimizer state that isn't sharded");
  HeldState out;
  for (UnitId unit : store.held())
    for (ParamId id : store.spec()[unit].params) {
      ParamSpec const& param = store.spec()[id];
      auto const piece = [&](Part part) {
        View const flat = store.flat(part, unit, store.latest(unit));
        return view_at(flat.data + std::size_t(param.offset) * width(flat.dtype), flat.region, flat.dtype, param.shape);
      };
      out.weights.push_back({param.name, param.slice, piece(Part::master)});
      for (Moment const& moment : moments_of(program.parts().optimizer))
        out.moments.push_back({param.name + moment.suffix, param.slice, piece(moment.part)});
    }
  auto const& buffers = store.spec().buffers;
  for (std::size_t b = 0; b < buffers.size(); ++b)
    if (std::find(store.held().begin(), store.held().end(), buffers[b].unit) != store.held().end())
      out.weights.push_back({buffers[b].name, {}, store.buffer(BufferId{std::int32_t(b)})});
  return out;
}

void refresh_compute_weights(Program& program) {
  ParameterStore& store = program.store();
  for (UnitId unit : store.held()) {
    View const master = store.flat(Part::master, unit, store.latest(unit));
    View const compute = store.flat(Part::compute, unit, store.latest(unit));
    if (compute.data != master.data) program.parts().ops.run(program.stream(), Copy{master, compute});
  }
  program.stream().synchronize();
}

}  // namespace shardmark
