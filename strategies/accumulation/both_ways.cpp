#include "strategies/accumulation/both_ways.hpp"

#include <fmt/format.h>

#include <cstring>

#include "app/hooks.hpp"
#include "comm/fabric.hpp"
#include "verify/capture.hpp"

namespace shardmark {
namespace {

std::int64_t elements_that_differ(View const& a, View const& b) {
  std::size_t const bytes = width(a.dtype);
  std::int64_t differ = 0;
  for (std::int64_t i = 0; i < a.elements(); ++i)
    differ += std::memcmp(a.data + std::size_t(i) * bytes, b.data + std::size_t(i) * bytes, bytes) != 0 ? 1 : 0;
  return differ;
}

View latest(Program& program, Part part, UnitId unit) { return program.store().flat(part, unit, program.store().latest(unit)); }

/// 0-based; -1: none of the first `steps` updates is short.
std::int64_t first_short_update(Job const& job, std::int64_t steps) {
  Sampler const sampler = job.sampler();
  std::vector<std::int64_t> ids(std::size_t(job.global_batch));
  for (std::int64_t update = 0; update < steps; ++update)
    if (sampler.samples_of(update, ids).size() < ids.size()) return update;
  return -1;
}

/// Compares two programs after each update.
class SideBySide {
 public:
  SideBySide(std::vector<BothWays::Compared>& out, int states) : out_(out) {
    for (char const* what : {"loss of each update", "norm of each update", "gradient of each update", "weights after each update"})
      out_.push_back({.what = what, .first = {}});
    for (int s = 0; s < states; ++s) out_.push_back({.what = fmt::format("optimizer state {} after each", s), .first = {}});
  }

  void take(Program& a, Program& b) {
    ++update_;
    scalar(0, a.last().loss, b.last().loss);
    scalar(1, a.last().norm, b.last().norm);
    a.stream().synchronize();
    b.stream().synchronize();
    for (UnitId unit : a.store().held()) {
      views(2, a, unit, gradient_total(a, unit), gradient_total(b, unit));
      constexpr Part parts[] = {Part::master, Part::state0, Part::state1};
      for (std::size_t kind = 3; kind < out_.size(); ++kind)
        views(kind, a, unit, latest(a, parts[kind - 3], unit), latest(b, parts[kind - 3], unit));
    }
  }

 private:
  void add(std::size_t kind, std::int64_t differ, std::int64_t of, std::string_view where) {
    BothWays::Compared& compared = out_[kind];
    if (differ > 0 && compared.differ == 0) compared.first = fmt::format("first in {} at update {}", where, update_);
    compared.differ += differ;
    compared.of += of;
  }
  void scalar(std::size_t kind, double a, double b) { add(kind, std::memcmp(&a, &b, sizeof a) != 0 ? 1 : 0, 1, "it"); }
  void views(std::size_t kind, Program& program, UnitId unit, View const& a, View const& b) {
    add(kind, elements_that_differ(a, b), a.elements(), program.store().spec()[unit].name);
  }

  std::vector<BothWays::Compared>& out_;
  std::int64_t update_ = 0;
};

LeafSums sums_of(Program& program, LeafRecorder& recorder) {
  return {accumulator(program.parts().model.dtype), program.store().spec(), program.store().gradients().order(), recorder.take()};
}

}  // namespace

TwoJobs two_jobs(Options options, Strategy const& strategy, int ranks, std::shared_ptr<Dataset const> const& data) {
  options.deterministic = true;
  Job replicas = build_job(options, strategy, ranks, options.dtype, JobPurpose::proof, data);
  options.batch = global_batch(options, ranks);
  options.batch_is_per_replica = false;
  options.micros = ranks;
  Job alone = build_job(options, strategy, 1, options.dtype, JobPurpose::proof, data);
  return {std::move(replicas), std::move(alone)};
}

Workbench::Workbench(RankContext const& context)
    : context_(context),
      ops_(build_backend(context.options, Determinism::deterministic)),
      self_(make_self()),
      beat_([&board = context.board] { board.beat(); }),
      alive_(std::make_unique<BeatHook>(beat_)) {}

RigParts Workbench::parts(Communicator& world, std::vector<Hook*> hooks) {
  hooks.push_back(alive_.get());
  return {.ops = *ops_, .world = world, .observer = nullptr, .hooks = std::move(hooks)};
}

template <class Read>
ByUnit Workbench::after_first_update(Job const& job, Communicator& world, Weights weights, Read&& read) {
  Rig rig(job, parts(world, {}));
  if (weights == Weights::of_first_rank) rig.program().make_replicas_equal();
  rig.program().advance(1);
  ByUnit out = leads() ? read(rig.program()) : ByUnit{};
  rig.program().drain();
  return out;
}

ByUnit Workbench::first_gradient(Job const& job, Weights weights) { return after_first_update(job, context_.world, weights, gradient_of); }

ByUnit Workbench::first_gradient_alone(Job const& job) {
  return leads() ? after_first_update(job, *self_, Weights::own, gradient_of) : ByUnit{};
}

namespace {

ByUnit buffers_of(Program& program) {
  program.stream().synchronize();
  ByUnit out;
  auto const& buffers = program.store().spec().buffers;
  for (std::size_t b = 0; b < buffers.size(); ++b) {
    if (buffers[b].holds != BufferSpec::Holds::numbers) continue;
    each_value(program.store().buffer(BufferId{std::int32_t(b)}),
               [values = &out.emplace_back()](std::int64_t, double x) { values->push_back(x); });
  }
  return out;
}

}  // namespace

ByUnit Workbench::first_buffers(Job const& job) { return after_first_update(job, context_.world, Weights::own, buffers_of); }

ByUnit Workbench::first_buffers_alone(Job const& job) {
  return leads() ? after_first_update(job, *self_, Weights::own, buffers_of) : ByUnit{};
}

BothWays run_both_ways(Workbench& bench, TwoJobs const& jobs, std::int64_t steps) {
  BothWays out;
  RankContext const& context = bench.context();
  std::int64_t const tail = first_short_update(jobs.alone, steps);
  SideBySide compare(out.compared, jobs.replicas.optimizer.states());
  std::unique_ptr<Hook> fault;
  std::vector<Hook*> faults;
  if (context.options.inject) fault = std::make_unique<InjectHook>(*context.options.inject, context.world.rank());
  if (fault) faults.push_back(fault.get());
  Rig replicas(jobs.replicas, bench.parts(context.world, faults));

  LeafRecorder first_leaves(0), tail_leaves(tail);
  auto self = make_self();
  std::unique_ptr<Rig> alone;
  if (bench.leads()) alone = std::make_unique<Rig>(jobs.alone, bench.parts(*self, {&first_leaves, &tail_leaves}));
  for (std::int64_t update = 0; update < steps; ++update) {
    replicas.program().advance(1);
    if (!alone) continue;
    Program& program = alone->program();
    program.advance(1);
    compare.take(replicas.program(), program);
    if (update == 0) {
      out.replicas = gradient_of(replicas.program());
      out.alone = gradient_of(program);
      out.leaves.emplace(sums_of(program, first_leaves));
    }
    if (update == tail) {
      double const share = double(program.last().counted) / double(program.history().front().counted);
      out.tail = BothWays::Tail{update + 1, share, gradient_of(program), sums_of(program, tail_leaves)};
    }
  }
  replicas.program().drain();
  if (alone) alone->program().drain();
  return out;
}

}  // namespace shardmark
