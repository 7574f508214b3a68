#include "model/store.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/mutant.hpp"

namespace shardmark {

OwnPart own_part(View const& own, Range where, ParamSpec const& param) {
  std::int64_t const begin = std::clamp(param.offset, where.begin, where.end);
  std::int64_t const end = std::clamp(param.offset + param.elements(), begin, where.end);
  if (begin == end) return {{0, 0}, slice(own, 0, 0, 0)};
  return {{begin - param.offset, end - param.offset}, slice(own, 0, begin - where.begin, end - where.begin)};
}

ParameterStore::ParameterStore(ModelSpec const& spec, std::vector<UnitId> held, std::vector<Segment> const& backward_order, SumOrder sum,
                               SumShape leaves, StoreConfig config, Arena& arena, Backend& ops, Stream& stream)
    : spec_(spec), held_(std::move(held)), config_(config), arena_(arena) {
  expect(config.shards.sharing != Sharing::replicated || config.shards.count == 1, "pieces of what isn't shared");
  gradients_.reserve(std::size_t(config.updates));
  for (int i = 0; i < config.updates; ++i)
    gradients_.emplace_back(spec, backward_order, sum, leaves, accumulator(config.compute), config.shards, arena, ops, stream);
  for (UnitId id : held_) {
    Unit unit;
    unit.padded = config.shards.padded(spec[id].elements);
    unit.piece = config.shards.piece(spec[id].elements);
    unit.versions.reserve(64);
    unit.spare.reserve(64);
    unit.versions.push_back(make_version(unit, Version{0}, Book::parameters, stream));
    ops.run(stream, Fill{unit.versions[0].compute.view, 0});
    if (unit.versions[0].master.view.data != unit.versions[0].compute.view.data) ops.run(stream, Fill{unit.versions[0].master.view, 0});
    auto const state = [&] {
      Tensor t = arena.make(accumulator(config.compute), {unit.piece}, Book::optimizer, stream);
      ops.run(stream, Fill{t.view, 0});
      return t;
    };
    if (config.states > 0) unit.state0 = state();
    if (config.states > 1 || mutant("unused_state_kept")) unit.state1 = state();
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
  Shards const& shards = config_.shards;
  Resident out{version, arena_.make(config_.compute, {shards.cut_weights() ? unit.piece : unit.padded}, book, stream), {}, 0};
  DType const master = accumulator(config_.compute);
  if (master != config_.compute)
    out.master = arena_.make(master, {unit.piece}, book, stream);
  else if (shards.cut_weights())
    out.master = out.compute;
  else
    out.master = with_view(out.compute, slice(out.compute.view, 0, shards.mine * unit.piece, (shards.mine + 1) * unit.piece));
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
  View const v = flat(Part::compute, p.unit, version);
  View out = view_at(v.data + std::size_t(p.offset) * width(v.dtype), v.region, v.dtype, p.shape);
  out.shape[0] *= count;
  return out;
}

View ParameterStore::gradient(ParamId first, int count, int slot) const {
  ParamSpec const& p = spec_[first];
  View v = gradients().leaf({p.unit, slot});
  View out = view_at(v.data + std::size_t(p.offset) * width(v.dtype), v.region, v.dtype, p.shape);
  out.shape[0] *= count;
  return out;
}

View ParameterStore::flat(Part part, UnitId id, Version version) const {
  bool const shared = config_.shards.sharing != Sharing::replicated;
  if (part != Part::compute) {
    expect(!shared, "a rank holds its piece of shared masters and states, not the whole");
    return piece(part, id, version);
  }
  Resident const& resident = find(id, version);
  if (!config_.shards.cut_weights()) return resident.compute.view;
  View const whole = unit(id).gathered.view;
  expect(bool(whole), [&] { return fmt::format("the weights of {} are used and have not been gathered", spec_[id].name); });
  return whole;
}

View ParameterStore::piece(Part part, UnitId id, Version version) const {
  switch (part) {
    case Part::compute: {
      View const v = find(id, version).compute.view;
      if (config_.shards.cut_weights()) return v;
      std::int64_t const size = unit(id).piece, begin = config_.shards.mine * size;
      return slice(v, 0, begin, begin + size);
    }
    case Part::master:
      return find(id, version).master.view;
    case Part::state0:
      return unit(id).state0.view;
    case Part::state1:
      return unit(id).state1.view;
  }
  return {};
}

View ParameterStore::own(Part part, UnitId id, Version version) const {
  View const all = piece(part, id, version);
  return all ? slice(all, 0, 0, own_range(id).size()) : View{};
}

ParameterStore::Gather ParameterStore::gather(UnitId id, Stream& stream) {
  Unit& u = unit(id);
  Resident const& last = u.versions.back();
  Tensor const mine = with_view(last.compute, piece(Part::compute, id, last.version));
  if (!config_.shards.cut_weights()) return {mine, last.compute};
  expect(!u.gathered, "weights are gathered twice");
  u.gathered = arena_.make(config_.compute, {u.padded}, Book::communication, stream);
  return {mine, u.gathered};
}

void ParameterStore::drop_gathered(UnitId id) { unit(id).gathered = {}; }

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
