#include "run/program.hpp"

#include <algorithm>
#include <limits>

#include "base/mutant.hpp"
#include "run/pipeline_mutant.hpp"

namespace shardmark {
namespace {

constexpr std::int64_t totals_count = 5;  // loss sum, counted, correct, non-finite flags, stop flags

std::vector<ChunkId> blocks_of(Schedule const& schedule, int lane) {
  std::vector<ChunkId> out;
  for (std::size_t b = 0; b < schedule.lane_of_chunk.size(); ++b)
    if (schedule.lane_of_chunk[b] == lane) out.push_back(ChunkId{std::int32_t(b)});
  return out;
}

/// Units and segments of a lane's blocks, which need not be contiguous.
std::vector<UnitId> units_of(Model const& model, std::vector<ChunkId> const& blocks) {
  std::vector<UnitId> out;
  for (ChunkId b : blocks)
    for (UnitId u : model.blocks[std::size_t(b.v)].reads)
      if (std::find(out.begin(), out.end(), u) == out.end()) out.push_back(u);
  std::sort(out.begin(), out.end());
  return out;
}

std::vector<Segment> segments_of(Model const& model, std::vector<ChunkId> const& blocks) {
  std::vector<Segment> out;
  for (auto b = blocks.rbegin(); b != blocks.rend(); ++b)
    for (Segment s : model.blocks[std::size_t(b->v)].produces) out.push_back(s);
  return out;
}

/// With buckets, gradients lie in the buckets' order, so that each bucket is one range.
std::vector<Segment> gradient_order(ProgramParts const& parts, std::vector<ChunkId> const& blocks) {
  auto const& buckets = parts.schedule.buckets;
  if (buckets.empty()) return segments_of(parts.model, blocks);
  std::vector<Segment> out;
  for (Bucket const& bucket : buckets[std::size_t(parts.lane)]) out.insert(out.end(), bucket.segments.begin(), bucket.segments.end());
  return out;
}

/// How far forwards read behind the latest version on this lane: 0 unless updates run ahead (vertical sync, 2BW, delayed twins).
int forward_lag(Lane const& lane) {
  int lag = 0, updates = 0;
  auto const walk = [&](std::vector<Action> const& actions, int oldest) {
    for (Action const& action : actions) {
      if (action.what == Do::decide) ++updates;
      if (action.what == Do::forward) lag = std::max(lag, updates - std::max(action.version.v, oldest));
    }
  };
  walk(lane.prologue, 0);
  // Versions below 0 are what the body's first repetition would read if the run had begun earlier: the lag of the steady state.
  walk(lane.body, std::numeric_limits<std::int32_t>::min());
  return lag;
}

/// Updates of whose micro-batches this lane has begun to forward, or fold gradients, before it decides the first of them: 1 with a flush.
int updates_under_way(Lane const& lane, int micros_per_update, Do what) {
  int most = 1, decided = 0;
  for (Section section : {Section::prologue, Section::body})
    for (Action const& action : lane[section]) {
      if (action.what == Do::decide) ++decided;
      if (action.what == what) most = std::max(most, action.micro.v / micros_per_update + 1 - decided);
    }
  return most;
}

/// Versions behind the latest that the store keeps for forwards to come.
int retained_versions(Lane const& lane, Schedule const& schedule) {
  return forward_lag(lane) + (pipeline_mutant(schedule, "one_version_too_many") ? 1 : 0);
}

/// Micro-batches that a section forwards on each of its blocks.
std::int64_t forwards(std::vector<Action> const& section) {
  std::int32_t last = -1;
  for (Action const& action : section)
    if (action.what == Do::forward) last = std::max(last, action.micro.v);
  return last + 1;
}

/// The pieces of units that this rank holds.
Shards shards_of(ProgramParts const& parts) {
  if (parts.schedule.sharing == Sharing::replicated) return {};
  Communicator& sharers = parts.mesh.over(parts.schedule.reduced_over);
  return {parts.schedule.sharing, sharers.size(), sharers.rank()};
}

std::unique_ptr<UpdatesUnderWay> make_under_way(ProgramParts const& parts, ParameterStore const& store, Stream& stream) {
  auto out = std::make_unique<UpdatesUnderWay>(store.config().updates, std::int64_t(parts.model.spec.params.size()) + totals_count,
                                               parts.updates_before, parts.arena, stream);
  auto const& order = store.gradients().order();
  for (UnitId unit : store.held()) {
    UnitSpec const& spec = parts.model.spec[unit];
    bool const shared = std::ranges::count(order, unit, &Segment::unit) < spec.slots;
    if (shared) out->share(unit, accumulator(parts.model.dtype), spec.slots, spec.elements, parts.arena, stream);
  }
  return out;
}

/// Whose batch statistics are merged: a micro-batch's own, those of all replicas on this rank (a serial twin), or of all ranks.
std::unique_ptr<Pieces> make_pieces(ProgramParts const& parts) {
  if (parts.batch_norm == BatchNormPolicy::sync && parts.mesh.extent(Axis::data) > 1)
    return std::make_unique<RankPieces>(parts.mesh.over(axes(Axis::data)));
  return std::make_unique<LocalPieces>(parts.abreast);
}

/// The parts of cut layers: one on each rank, or all here.
std::unique_ptr<TensorGroup> make_tensor_group(ProgramParts const& parts) {
  if (parts.mesh.extent(Axis::tensor) == 1) return std::make_unique<LocalTensorGroup>(parts.tensor_parts);
  return std::make_unique<RankTensorGroup>(parts.mesh.over(axes(Axis::tensor)), parts.reduction);
}

}  // namespace

Program::Program(ProgramParts parts)
    : parts_(std::move(parts)),
      compute_(parts_.ops.stream()),
      data_(parts_.ops.stream()),
      lane_(parts_.schedule.lanes.at(std::size_t(parts_.lane))),
      store_((parts_.arena.watch(*compute_), parts_.arena.watch(*data_), parts_.model.spec),
             units_of(parts_.model, blocks_of(parts_.schedule, parts_.lane)),
             gradient_order(parts_, blocks_of(parts_.schedule, parts_.lane)), parts_.schedule.sum, parts_.schedule.leaves,
             StoreConfig{.compute = parts_.model.dtype,
                         .states = parts_.optimizer.states(),
                         .shards = shards_of(parts_),
                         .retained = retained_versions(lane_, parts_.schedule),
                         .updates = updates_under_way(lane_, parts_.schedule.micros_per_update(), Do::fold)},
             parts_.arena, parts_.ops, *compute_),
      blocks_(blocks_of(parts_.schedule, parts_.lane)),
      pieces_(make_pieces(parts_)),
      tensor_(make_tensor_group(parts_)),
      tally_tree_(parts_.schedule.leaves) {
  expect(parts_.schedule.form == Form::lowered, "the executor runs lowered schedules");
  expect(parts_.schedule.leaves.leaves() == parts_.schedule.micros_per_update(), "every micro-batch of an update is one leaf");
  // Between operations, and inside long ones, communication advances: MPI makes no progress by itself.
  if (auto* host = dynamic_cast<HostStream*>(compute_.get()))
    host->progress([](void* world) { static_cast<Communicator*>(world)->progress(); }, &parts_.mesh.world());
  micros_.reserve(64);
  halfway_.reserve(std::size_t(parts_.abreast));
  messages_.reserve(16);
  slots_.reserve(16);
  gathered_.reserve(64);
  history_.reserve(4096);
  Arena& arena = parts_.arena;
  std::int64_t leaves = 0;
  for (UnitId u : store_.held())
    for (ParamId p : parts_.model.spec[u].params) leaves += norm_leaves(parts_.model.spec[p].elements());
  tallies_ = arena.make(DType::f64, {parts_.schedule.micros_per_update(), 3}, Book::workspace, *compute_);
  spare_tally_ = arena.make(DType::f64, {3}, Book::workspace, *compute_);
  totals_ = arena.make(DType::f64, {totals_count}, Book::workspace, *compute_);
  scalars_ = arena.make(DType::f64, {scalars}, Book::workspace, *compute_);
  leaves_ = arena.make(DType::f64, {leaves}, Book::workspace, *compute_);
  norms_ = arena.make(DType::f64, {std::int64_t(parts_.model.spec.params.size())}, Book::workspace, *compute_);
  if (store_.config().shards.count > 1 && parts_.schedule.sharing != Sharing::root)
    shared_norms_ =
        std::make_unique<SharedNorms>(store_, parts_.mesh.over(parts_.schedule.reduced_over), leaves_, parts_.ops, arena, *compute_);
  if (parts_.batch_norm == BatchNormPolicy::deferred)
    deferred_ = std::make_unique<DeferredStatistics>(store_, parts_.schedule.leaves,
                                                     updates_under_way(lane_, parts_.schedule.micros_per_update(), Do::forward), parts_.ops,
                                                     arena, *compute_);
  if (parts_.schedule.defers()) under_way_ = make_under_way(parts_, store_, *compute_);
  norm_squared_ = arena.make(DType::f64, {1}, Book::workspace, *compute_);
  for (Tensor const* t : {&tallies_, &spare_tally_, &totals_, &scalars_, &norms_}) parts_.ops.run(*compute_, Fill{t->view, 0});
  if (parts_.values == Values::real) initialise(parts_.model, store_, parts_.ops, *compute_);
  if (parts_.updates_before > 0) begin_behind(parts_.updates_before);
}

/// Micro-batches, versions, windows and the count in Adam's bias correction go on from `updates`; all of them follow from it.
void Program::begin_behind(std::int64_t updates) {
  window_ = version_base_ = updates;
  micro_base_ = loaded_ = updates * parts_.schedule.micros_per_update();
  for (UnitId unit : store_.held()) store_.relabel(unit, Version{std::int32_t(updates)});
  std::int64_t const count = std::int64_t(Scalar::update);
  if (!mutant("resume_without_update_count")) parts_.ops.run(*compute_, Fill{slice(scalars_.view, 0, count, count + 1), double(updates)});
}

Program::~Program() = default;

void Program::advance(std::int64_t windows) {
  // All lanes have forwarded the same number of micro-batches at every stop, whatever their depth.
  asked_ += windows * parts_.schedule.micros_per_window;
  if (!in_flight_) {
    run(Section::prologue, 0);
    forwarded_ = forwards(lane_.prologue);
    in_flight_ = true;
  }
  for (; forwarded_ < asked_; forwarded_ += parts_.schedule.micros_per_window) run(Section::body, bodies_++);
}

void Program::drain() {
  if (!in_flight_) return;
  run(Section::epilogue, bodies_);
  micro_base_ = window_ * parts_.schedule.micros_per_update();  // all lanes have made the same number of updates
  version_base_ = window_;
  store_.turn_to(window_ - 1);  // what is left of the last update
  bodies_ = forwarded_ = asked_ = 0;
  in_flight_ = false;
  invariant(requests_.empty(), "a request is outstanding at the end of a run (case 65)");
  invariant(boundaries_.size() == 0 && stashes_.open_count() == 0, "something is still in flight after draining");
}

void Program::run(Section section, std::int64_t repetition) {
  std::span<Action const> const actions = lane_[section];
  for (std::size_t at = 0; at < actions.size(); ++at) {
    from_here_ = actions.subspan(at);
    Action action = shifted(actions[at], parts_.schedule, int(repetition));
    action.micro.v += std::int32_t(micro_base_);
    action.version.v += std::int32_t(version_base_);
    std::int64_t const window = update_of(action);
    store_.turn_to(window);
    try {
      for (Hook* hook : parts_.hooks) hook->before(*this, action, window);
      act(action, repetition);
      for (Hook* hook : parts_.hooks) hook->after(*this, action, window);
    } catch (std::exception const& error) {
      // Before requests are given up, of which the others would hear first.
      parts_.mesh.world().abort(error.what());
      throw;
    }
    compute_->tick();
  }
}

/// The update, from 0, that an action belongs to. Its decision closes it; the units' updates behind that still belong to it. Gradients are
/// those of their micro-batches, which deferred decisions leave behind; other actions stand in front of the decision that comes next.
std::int64_t Program::update_of(Action const& action) const {
  switch (action.what) {
    case Do::backward:
    case Do::backward_input:
    case Do::backward_weight:
    case Do::fold:
      return action.micro.v / parts_.schedule.micros_per_update();
    case Do::update:
      return window_ - 1;
    default:
      return window_;
  }
}

int Program::leaf_of(MicroId micro) const { return int((micro.v - micro_base_) % parts_.schedule.micros_per_update()); }

void Program::act(Action const& action, std::int64_t repetition) {
  switch (action.what) {
    case Do::forward:
      return forward(action);
    case Do::backward:
      return backward(action, Wanted::both);
    case Do::backward_input:
      return backward(action, Wanted::input);
    case Do::backward_weight:
      return backward(action, Wanted::weight);
    case Do::fold:
      return fold(action);
    case Do::post:
      return post(action.token, repetition);
    case Do::wait:
      return wait(action.token);
    case Do::tie:
      return tie(action.unit);
    case Do::decide:
      return decide();
    case Do::update:
      return update(action.unit, action.version);
    case Do::reduce:
      return;  // a mark: lower() has turned it into posts and waits
    case Do::recompute:
      return recompute(action);
    case Do::release:
      return store_.drop_gathered(action.unit);
  }
  invariant(false, "the schedule holds an action that this executor doesn't run");
}

Context Program::context(MicroBatch const& batch, Version version, Pass pass) {
  return Context{.ops = parts_.ops,
                 .stream = *compute_,
                 .arena = parts_.arena,
                 .store = store_,
                 .version = version,
                 .micro = batch,
                 .pieces = *pieces_,
                 .tensor = *tensor_,
                 .pass = pass,
                 .running = running(batch.id, pass),
                 .deferred = deferred_.get(),
                 .seed = parts_.model.seed,
                 .observer = parts_.observer};
}

Program::Live& Program::micro(MicroId id) {
  for (Live& live : micros_)
    if (live.batch.id == id) return live;
  // Micro-batches are loaded in order; a lane meets them in order of their forwards.
  while (loaded_ <= id.v) {
    HostBatch const& host = parts_.batches.next();
    for (Hook* hook : parts_.hooks) hook->read(*this, host);
    MicroBatch batch = upload(host, MicroId{std::int32_t(loaded_)});
    std::int64_t const window = loaded_++ / parts_.schedule.micros_per_update();
    window_counted_[std::size_t(window) % window_counted_.size()] = batch.window_counted;
    micros_.push_back({std::move(batch), int(blocks_.size())});
  }
  return micros_.back();
}

/// One over the loss terms of the whole update: the only place where a gradient is scaled.
double Program::loss_scale(HostBatch const& host) const {
  if (host.window_counted == 0) return 0;
  int const replicas = parts_.mesh.extent(Axis::data);
  if (mutant("local_denominator") && replicas > 1) return host.counted > 0 ? 1 / double(host.counted) : 0;
  if (mutant("divide_twice") && replicas > 1) return 1 / double(host.window_counted) / replicas;
  if (mutant("sum_for_mean") && replicas > 1) return replicas / double(host.window_counted);
  if (pipeline_mutant(parts_.schedule, "unnormalised_loss") || pipeline_mutant(parts_.schedule, "rescale_at_every_pass")) return 1;
  if (pipeline_mutant(parts_.schedule, "denominator_of_the_micro_batch")) return 1 / double(std::max<std::int64_t>(1, host.counted));
  if (pipeline_mutant(parts_.schedule, "denominator_of_the_window_before") && loaded_ >= parts_.schedule.micros_per_update())
    return 1 / double(window_counted_[std::size_t(loaded_ / parts_.schedule.micros_per_update() - 1) % window_counted_.size()]);
  return 1 / double(host.window_counted);
}

MicroBatch Program::upload(HostBatch const& host, MicroId id) {
  MicroBatch out;
  out.id = id;
  out.rows = host.rows;
  out.counted = host.counted;
  out.window_counted = host.window_counted;
  out.scale = loss_scale(host);
  auto const copy = [&](std::vector<std::byte> const& from, DType dtype, std::vector<std::int64_t> const& sample) {
    std::vector<std::int64_t> const& s = sample;
    std::array<std::int64_t, 4> shape{host.rows};
    std::copy(s.begin(), s.end(), shape.begin() + 1);
    // Vectors are stored as fp32; the model computes in its own type.
    DType const used = unit_roundoff(dtype) > 0 ? parts_.model.dtype : dtype;
    Tensor to = parts_.arena.make(used, Shape{shape.data(), s.size() + 1}, Book::data, *data_);
    View const source = view_at(const_cast<std::byte*>(from.data()), nullptr, dtype, Shape{shape.data(), s.size() + 1});
    parts_.ops.run(*data_, Copy{source, to.view});
    return to;
  };
  SampleShape const& shape = parts_.samples;
  out.input = copy(host.input, shape.input_type, shape.input);
  out.target = copy(host.target, shape.target_type, shape.target);
  out.samples = parts_.arena.make(DType::i64, {host.rows, 2}, Book::data, *data_);
  View const ids =
      view_at(reinterpret_cast<std::byte*>(const_cast<std::int64_t*>(host.samples.data())), nullptr, DType::i64, out.samples.view.dims());
  parts_.ops.run(*data_, Copy{ids, out.samples.view});
  Event const uploaded = data_->record();
  data_->synchronize();  // the host batch is only lent
  compute_->wait(uploaded);
  int const row = leaf_of(id);
  out.tally = with_view(tallies_, reshape(slice(tallies_.view, 0, row, row + 1), {3}));
  return out;
}

}  // namespace shardmark
