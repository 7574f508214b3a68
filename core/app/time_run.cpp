// The timed run: rig, probe, prediction, loop. Predictions are made before the steps that they are compared with.

#include <algorithm>

#include "app/bench.hpp"
#include "app/hooks.hpp"
#include "app/pictures.hpp"
#include "app/stages.hpp"
#include "app/traced.hpp"
#include "record/files.hpp"

namespace shardmark {
namespace {

constexpr std::size_t spans_of_trace = 1 << 16;
constexpr std::int64_t stage_batches = 5;

/// The same work with everything on every replica, as ddp does it.
class AllReducing final : public Strategy {
 public:
  explicit AllReducing(Strategy const& of) : of_(of) {}
  std::string name() const override { return of_.name(); }
  std::optional<Refusal> refuse(Options const& options, int ranks) const override { return of_.refuse(options, ranks); }
  MeshShape mesh(Options const& options, int ranks) const override { return of_.mesh(options, ranks); }
  Schedule plan(Options const& options, int ranks) const override { return of_.plan(options, ranks); }
  Axes reduced_over(int ranks) const override { return of_.reduced_over(ranks); }
  Prediction predict(Options const& options, std::vector<BlockShape> const& blocks, int ranks) const override {
    return of_.predict(options, blocks, ranks);
  }

 private:
  Strategy const& of_;
};

/// Heartbeat and progress after every update, checkpoints, and the costs of actions in warm-up steps, but for the first.
class Between final : public BetweenUpdates {
 public:
  Between(RankContext const& context, Saver& saver, Launch const& launch, ActionTimes& warm)
      : board_(context.board),
        saver_(saver),
        warm_(warm),
        before_(launch.before),
        warmup_(launch.warmup),
        progress_(context.prints(), context.options.program, launch.warmup + launch.timed) {
    if (warmup_ > 0) warm_.set(ActionTimes::Recording::on);
  }
  void beat(std::int64_t done) override {
    if (done == 1 && warmup_ > 1) warm_.clear();
    if (done == warmup_) warm_.set(ActionTimes::Recording::off);
    board_.beat();
    progress_.step(done);
  }
  bool wants_pause(std::int64_t done) override { return saver_.due(before_ + done); }
  Proceed pause() override { return saver_.save(); }

 private:
  StatusBoard& board_;
  Saver& saver_;
  ActionTimes& warm_;
  std::int64_t before_, warmup_;
  Progress progress_;
};

void write_pictures(Options const& options, Job const& job, TracedUpdates const& seen, std::optional<Costs> const& costs) {
  if (!options.trace.empty()) write_trace(options.trace, seen.by_rank);
  if (options.svg.empty()) return;
  std::string const title = options.program + (costs ? ", planned with the warm-up's costs, and measured" : ", measured");
  record::replace_file(options.svg, measured_picture(job, seen.by_rank, costs, traced_updates, title));
}

/// Every held-out sample once over all ranks.
Evaluated evaluate(Rig& rig, RankContext const& context, HostExchange& exchange) {
  auto const held_out = build_held_out(context.options);
  std::int64_t const rows = std::max<std::int64_t>(1, rig.job().global_batch / rig.job().replicas / rig.job().micros);
  Evaluation evaluation(*held_out, rows, rig.job().replicas, rig.mesh().coordinate(Axis::data));
  std::array<double, 3> total{};
  for (std::int64_t round = 0; round < evaluation.rounds(); ++round) {
    auto const tally = rig.program().evaluate(evaluation.read(round));
    for (std::size_t i = 0; i < total.size(); ++i) total[i] += tally[i];
    context.board.beat();
  }
  if (rig.mesh().coordinate(Axis::tensor) > 0) total = {};  // tensor-parallel ranks all know the same
  for (double& t : total) t = exchange.sum(t);
  double const counted = std::max(1.0, total[1]);
  return {total[0] / counted, total[2] / counted, std::int64_t(total[1])};
}

bool equal_over(Communicator& group, std::uint64_t hash) {
  HostExchange exchange(group);
  auto const all = exchange.gather({double(hash >> 32), double(hash & 0xffffffffu)});
  return std::all_of(all.begin(), all.end(), [&](auto const& of_rank) { return of_rank == all.front(); });
}

/// Pipeline stages and tensor-parallel ranks hold other weights: only the ranks along the data axis must agree in all of them, those along
/// the tensor axis in what they hold copies of.
bool replicas_equal(Rig& rig) {
  bool const replicas = equal_over(rig.mesh().over(axes(Axis::data)), rig.program().weights_hash());
  return equal_over(rig.mesh().over(axes(Axis::tensor)), rig.program().copies_hash()) && replicas;
}

/// Weights are the checkpoint's or broadcast from rank 0, and every replica has the same bits (case 71).
void start_equal(Rig& rig, std::optional<Checkpoint> const& resumed) {
  if (resumed) resumed->load(rig.program());
  rig.program().make_replicas_equal();
  if (!replicas_equal(rig)) throw RankFailure("the replicas' weights differ after the broadcast; the communicator is broken");
}

}  // namespace

bool BenchRun::nonfinite() const {
  return std::any_of(measured.windows.begin(), measured.windows.end(), [](WindowResult const& w) { return w.skipped; });
}

BenchRun time_run(RankContext const& context, std::shared_ptr<Dataset const> const& data, std::optional<CheckpointFolder> folder) {
  Options const& options = context.options;
  BenchRun out;
  out.job = build_job(options, context.strategy, context.world.size(), options.dtype, JobPurpose::training, data);
  auto const resumed = resumed_checkpoint(options);
  out.launch = launch_of(options, resumed ? resumed->state().updates : 0);
  auto const blocks = out.job.model->shapes();
  out.formula = context.strategy.predict(options, blocks, context.world.size());
  out.plan = dry_run(out.job, context.world.rank());
  auto ops = build_backend(options, options.deterministic ? Determinism::deterministic : Determinism::fastest);

  StatusHook status(context.board);
  TraceHook trace(spans_of_trace);
  ActionTimes warm(out.job), traced(out.job);
  std::vector<Hook*> hooks{&status, &trace, &warm, &traced};
  std::optional<InjectHook> inject;
  if (options.inject) hooks.push_back(&inject.emplace(*options.inject, context.world.rank()));
  // Peers read and write each other's tensors in place where the transport allows it.
  std::optional<Region> slab = context.world.symmetric(out.plan.slab_bytes);
  Rig rig(out.job, {.ops = *ops, .world = context.world, .hooks = hooks, .updates_before = out.launch.before, .slab = slab});
  HostExchange exchange(context.world);
  out.probe = run_probe(out.job, *ops, rig.mesh().over(probed_axes(out.job)));
  if (out.job.mesh.pipeline > 1) out.probe.message = probe_link(rig);
  double const exchanged = exchange_seconds(out.plan, out.probe);
  StepPrediction mine = predict_step(out.job, seconds_of_lanes(rig.mesh(), compute_seconds(out.plan, out.probe) + exchanged), out.probe);
  mine.exposed_seconds += exchanged;
  out.prediction = {exchange.max(mine.compute_seconds), exchange.max(mine.exposed_seconds), exchange.max(mine.bubble_fraction),
                    exchange.max(mine.step_seconds)};
  start_equal(rig, resumed);

  Saver saver(context, rig, exchange, std::move(folder), out.launch.before);
  {
    Between between(context, saver, out.launch, warm);
    out.measured = measure(rig, context.world, out.launch.warmup, out.launch.timed, between);
  }
  saver.save();
  std::int64_t const updates = std::max<std::int64_t>(1, std::int64_t(rig.program().history().size()));
  out.reductions_per_update = rig.program().reductions_posted() / updates;
  out.checkpoints = saver.cost();
  out.unsaved = saver.failure();
  out.peak_mine = rig.ledger().peak_total();
  for (std::size_t b = 0; b < books; ++b) out.peak_by_book[b] = rig.ledger().peak(Book(b));
  for (std::size_t b = 0; b < blocks.size(); ++b) out.forward_seconds.push_back(warm.median(Do::forward, std::int32_t(b)));
  out.replicas_equal = replicas_equal(rig);
  if (out.job.scatters())
    out.shares =
        share_out(context.world, out.measured, out.plan, out.probe, out.peak_by_book, out.peak_mine,
                  build_job(options, AllReducing(context.strategy), context.world.size(), options.dtype, JobPurpose::training, data));
  // Before the traced steps, which train on: how many there are depends on the strategy.
  if (options.evaluate) out.evaluated = evaluate(rig, context, exchange);
  if (!out.measured.stopped) {
    Gather const gather = options.trace.empty() && options.svg.empty() ? Gather::no : Gather::yes;
    TracedUpdates const updates_seen = trace_updates(rig, trace, context.world, gather);
    out.phases = updates_seen.phases;
    std::optional<Costs> costs;
    if (out.job.mesh.pipeline > 1 && out.launch.warmup > 0) costs = measured_costs(rig, warm, out.probe.message);
    if (costs) out.stages = report_stages(rig, traced, *costs, out.plan.message_bytes, stage_batches);
    if (context.prints()) write_pictures(options, rig.job(), updates_seen, costs);
  }
  return out;
}

}  // namespace shardmark
