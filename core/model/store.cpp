#include "model/store.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace shardmark {

ParameterStore::ParameterStore(ModelSpec const& spec, std::vector<UnitId> held, std::vector<Segment> const& backward_order, SumOrder sum,
                               SumShape leaves, StoreConfig config, Arena& arena, Backend& ops, Stream& stream)
    : spec_(spec),
      held_(std::move(held)),
      config_(config),
      arena_(arena),
      gradients_(spec, backward_order, sum, leaves, accumulator(config.compute), config.shards, arena, ops, stream) {
  for (UnitId id : held_) {
    Unit unit;
    unit.padded = (spec[id].elements + config.shards - 1) / config.shards * config.shards;
    unit.versions.reserve(64);
    unit.spare.reserve(64);
    unit.versions.push_back(make_version(unit, Version{0}, Book::parameters, stream));
    ops.run(stream, Fill{unit.versions[0].compute.view, 0});
    if (unit.versions[0].master.view.data != unit.versions[0].compute.view.data) ops.run(stream, Fill{unit.versions[0].master.view, 0});
    std::int64_t const piece = unit.padded / config.shards;
    auto const state = [&] {
      Tensor t = arena.make(accumulator(config.compute), {piece}, Book::optimizer, stream);
      ops.run(stream, Fill{t.view, 0});
      return t;
    };
    if (config.states > 0) unit.state0 = state();
    if (config.states > 1) unit.state1 = state();
    units_.push_back(std::move(unit));
  }
  make_buffers(ops, stream);
}

/// Counters first, which keeps everything aligned.
void ParameterStore::make_buffers(Backend& ops, Stream& stream) {
  buffer_at_.assign(spec_.buffers.size(), -1);
  std::int64_t bytes = 0;
  for (auto holds : {BufferSpec::Holds::counter, BufferSpec::Holds::numbers})
    for (std::size_t b = 0; b < spec_.buffers.size(); ++b) {
      BufferSpec const& buffer = spec_.buffers[b];
      if (buffer.holds != holds || std::find(held_.begin(), held_.end(), buffer.unit) == held_.end()) continue;
      buffer_at_[b] = bytes;
      bytes += buffer.elements() * std::int64_t(width(buffer.type(config_.compute)));
    }
  if (bytes == 0) return;
  buffers_ = arena_.make(DType::u8, {bytes}, Book::parameters, stream);
  for (std::size_t b = 0; b < spec_.buffers.size(); ++b)
    if (buffer_at_[b] >= 0) ops.run(stream, Fill{buffer(BufferId{std::int32_t(b)}), spec_.buffers[b].initial});
}

View ParameterStore::buffer(BufferId id) const {
  BufferSpec const& spec = spec_[id];
  std::int64_t const at = buffer_at_[std::size_t(id.v)];
  expect(at >= 0, "this rank doesn't hold that buffer");
  return view_at(buffers_.view.data + at, buffers_.view.region, spec.type(config_.compute), spec.shape);
}

ParameterStore::Resident ParameterStore::make_version(Unit& unit, Version version, Book book, Stream& stream) {
  if (!unit.spare.empty()) {
    Resident out = std::move(unit.spare.back());
    unit.spare.pop_back();
    out.version = version;
    return out;
  }
  Resident out{version, arena_.make(config_.compute, {unit.padded}, book, stream), {}, 0};
  DType const master = accumulator(config_.compute);
  out.master = master == config_.compute ? out.compute : arena_.make(master, {unit.padded}, book, stream);
  return out;
}

ParameterStore::Unit const& ParameterStore::unit(UnitId id) const {
  auto const at = std::find(held_.begin(), held_.end(), id);
  expect(at != held_.end(), "this rank doesn't hold that unit");
  return units_[std::size_t(at - held_.begin())];
}

ParameterStore::Resident const& ParameterStore::find(UnitId id, Version version) const {
  for (Resident const& r : unit(id).versions)
    if (r.version == version) return r;
  throw RankFailure(fmt::format("version {} of {} is not resident (the latest is {})", version.v, spec_[id].name, latest(id).v));
}

View ParameterStore::weights(ParamId first, int count, Version version) const {
  ParamSpec const& p = spec_[first];
  View v = find(p.unit, version).compute.view;
  View out = view_at(v.data + std::size_t(p.offset) * width(v.dtype), v.region, v.dtype, p.shape);
  out.shape[0] *= count;
  return out;
}

View ParameterStore::gradient(ParamId first, int count, int slot) const {
  ParamSpec const& p = spec_[first];
  View v = gradients_.leaf({p.unit, slot});
  View out = view_at(v.data + std::size_t(p.offset) * width(v.dtype), v.region, v.dtype, p.shape);
  out.shape[0] *= count;
  return out;
}

View ParameterStore::flat(Part part, UnitId id, Version version) const {
  switch (part) {
    case Part::compute:
      return find(id, version).compute.view;
    case Part::master:
      return find(id, version).master.view;
    case Part::state0:
      return unit(id).state0.view;
    case Part::state1:
      return unit(id).state1.view;
  }
  return {};
}

View ParameterStore::shard(Part part, UnitId id, Version version) const {
  View const whole = flat(part, id, version);
  if (part == Part::state0 || part == Part::state1) return whole;  // states are kept for the own piece alone
  std::int64_t const piece = whole.shape[0] / config_.shards;
  return slice(whole, 0, config_.shard * piece, (config_.shard + 1) * piece);
}

void ParameterStore::publish(UnitId id, Version to, Stream& stream) {
  Unit& u = unit(id);
  Resident& last = u.versions.back();
  expect(to.v == last.version.v + 1, "versions grow by one");
  if (last.pins == 0 && config_.retained == 0) {
    last.version = to;
    return;
  }
  u.versions.push_back(make_version(u, to, Book::versions, stream));
  prune(u);
  peak_resident_ = std::max(peak_resident_, int(u.versions.size()));
}

void ParameterStore::prune(Unit& u) {
  std::int32_t const oldest = u.versions.back().version.v - config_.retained;
  std::erase_if(u.versions, [&](Resident& old) {
    bool const over = old.pins == 0 && old.version.v < oldest;
    if (over) u.spare.push_back(std::move(old));
    return over;
  });
}

void ParameterStore::pin(UnitId id, Version version) { ++find(id, version).pins; }

void ParameterStore::release(UnitId id, Version version) {
  Resident& r = find(id, version);
  expect(r.pins > 0, "a version is released more often than it was pinned");
  --r.pins;
  prune(unit(id));
}

Version ParameterStore::latest(UnitId id) const { return unit(id).versions.back().version; }
int ParameterStore::resident(UnitId id) const { return int(unit(id).versions.size()); }

void ParameterStore::relabel(UnitId id, Version version) {
  Unit& u = unit(id);
  expect(u.versions.size() == 1 && u.versions[0].pins == 0, "a state is loaded while micro-batches are in flight");
  u.versions[0].version = version;
}

}  // namespace shardmark
