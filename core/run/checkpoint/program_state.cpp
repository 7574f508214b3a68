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

namespace {

/// A parameter's part of what lies in `own`, the range `where` of its unit.
void add_piece(std::vector<NamedPiece>& pieces, std::string name, View const& own, Range where, ParamSpec const& param) {
  OwnPart const part = own_part(own, where, param);
  bool const whole = part.range.size() == param.elements();
  if (whole) return pieces.push_back({std::move(name), param.slice, part.values});
  expect(param.slice.dim < 0, "pieces of a slice");
  if (part.range.size() > 0) pieces.push_back({std::move(name), {-1, part.range.begin, part.range.end}, part.values});
}

/// All parameters of a unit.
template <class Of>
void add_unit(HeldState& out, Program& program, UnitId unit, Range where, Of&& of) {
  for (ParamId id : program.store().spec()[unit].params) {
    ParamSpec const& param = program.store().spec()[id];
    add_piece(out.weights, param.name, of(Part::master), where, param);
    for (Moment const& moment : moments_of(program.parts().optimizer))
      add_piece(out.moments, param.name + moment.suffix, of(moment.part), where, param);
  }
}

void add_buffers(HeldState& out, ParameterStore& store) {
  auto const& buffers = store.spec().buffers;
  for (std::size_t b = 0; b < buffers.size(); ++b)
    if (std::find(store.held().begin(), store.held().end(), buffers[b].unit) != store.held().end())
      out.weights.push_back({buffers[b].name, {}, store.buffer(BufferId{std::int32_t(b)})});
}

}  // namespace

HeldState held_state(Program& program) {
  ParameterStore& store = program.store();
  HeldState out;
  for (UnitId unit : store.held())
    add_unit(out, program, unit, store.own_range(unit), [&](Part part) { return store.own(part, unit, store.latest(unit)); });
  add_buffers(out, store);
  return out;
}

WholeState whole_state(Program& program) {
  ParameterStore& store = program.store();
  Shards const& shards = store.config().shards;
  if (shards.count == 1 || shards.sharing == Sharing::root) return {held_state(program), nullptr};
  Communicator& sharers = program.parts().mesh.over(program.parts().schedule.reduced_over);
  bool const collects = sharers.rank() == 0;
  std::size_t const element = width(accumulator(store.config().compute));
  std::int64_t elements = 0;
  for (UnitId unit : store.held()) elements += shards.padded(store.spec()[unit].elements);
  std::size_t const parts = 1 + moments_of(program.parts().optimizer).size();
  WholeState out{{}, std::make_unique<Pages>(collects ? std::size_t(elements) * element * parts : 1)};
  std::byte* next = out.memory->data();
  auto const gather = [&](UnitId unit, Part part) {
    View const piece = store.piece(part, unit, store.latest(unit));
    std::int64_t const padded = shards.padded(store.spec()[unit].elements);
    View const whole = collects ? view_at(next, nullptr, piece.dtype, Shape{&padded, 1}) : View{};
    if (collects) next += whole.bytes();
    // The store and `out` keep the memory; these tensors only name it for the exchange.
    Tensor const send{Storage(std::shared_ptr<void>(), piece.region), piece}, recv{Storage(), whole};
    sharers
        .post(program.stream(), Exchange{.what = Collective::gather, .send = send, .recv = recv, .reduction = {}, .purpose = "checkpoint"})
        .wait(program.stream());
    return whole;
  };
  for (UnitId unit : store.held()) {
    std::array<View, 3> wholes{gather(unit, Part::master)};
    for (Moment const& moment : moments_of(program.parts().optimizer))
      wholes[moment.part == Part::state0 ? 1 : 2] = gather(unit, moment.part);
    if (collects)
      add_unit(out.held, program, unit, {0, store.spec()[unit].elements}, [&](Part part) {
        return wholes[part == Part::master ? 0 : part == Part::state0 ? 1 : 2];
      });
  }
  if (collects) add_buffers(out.held, store);
  return out;
}
void refresh_compute_weights(Program& program) {
  ParameterStore& store = program.store();
  for (UnitId unit : store.held()) {
    View const master = store.own(Part::master, unit, store.latest(unit)), compute = store.own(Part::compute, unit, store.latest(unit));
    if (compute.data != master.data) program.parts().ops.run(program.stream(), Copy{master, compute});
  }
  if (store.config().shards.sharing != Sharing::replicated) program.make_replicas_equal();
  program.stream().synchronize();
}

}  // namespace shardmark
