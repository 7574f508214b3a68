#include "run/job.hpp"

#include <algorithm>
#include <numeric>

#include "backend/decorators/meta.hpp"
#include "base/mutant.hpp"
#include "comm/decorators/recording.hpp"

namespace shardmark {
namespace {

class FromLoader final : public BatchSource {
 public:
  explicit FromLoader(Loader& loader) : loader_(loader) {}
  HostBatch const& next() override { return loader_.next(); }

 private:
  Loader& loader_;
};

/// Micro-batches as large as the first update's, without content.
class ShapesOnly final : public BatchSource {
 public:
  ShapesOnly(Job const& job, int replica) {
    std::int64_t const rows = std::min(job.global_batch, job.data->size());
    int const first = job.plays_all_replicas ? 0 : replica, last = job.plays_all_replicas ? job.replicas : replica + 1;
    for (int r = first; r < last; ++r)
      for (int k = 0; k < job.micros; ++k) {
        HostBatch batch;
        batch.rows = piece_of(piece_of(rows, job.replicas, r).size(), job.micros, k).size();
        batch.window_counted = 1;
        batches_.push_back(std::move(batch));
      }
  }
  HostBatch const& next() override { return batches_[at_++ % batches_.size()]; }

 private:
  std::vector<HostBatch> batches_;
  std::size_t at_ = 0;
};

int lane_of(Mesh const& mesh) { return mesh.coordinate(Axis::pipeline); }

/// Named groups of the holders of tied weights.
std::vector<NamedGroup> tied_groups(Job const& job) {
  std::vector<NamedGroup> out;
  for (TiedUnit const& tied : tied_units(job.model->shapes(), job.schedule.lane_of_chunk))
    if (tied.shared()) out.push_back({tied_group(tied.unit), tied.holders()});
  return out;
}

ProgramParts program_parts(Job const& job, Backend& ops, Arena& arena, Mesh& mesh, BatchSource& source) {
  return {.model = *job.model,
          .schedule = job.schedule,
          .lane = lane_of(mesh),
          .ops = ops,
          .arena = arena,
          .mesh = mesh,
          .batches = source,
          .samples = job.data->shape(),
          .optimizer = job.optimizer,
          .reduction = job.reduction,
          .batch_norm = job.batch_norm,
          .abreast = job.abreast()};
}

constexpr std::size_t meta_slab = std::size_t(1) << 44;
constexpr int warm_windows = 2, counted_windows = 2;

}  // namespace

Job serial_twin(Job const& job) {
  expect(job.schedule.synchronous() == job.delays.empty(), "an asynchronous job says by how much its weights lag");
  Job twin = job;
  twin.mesh = {};
  twin.plays_all_replicas = true;
  twin.reduction = Reduction::fixed_tree;
  auto const blocks = job.model->shapes();
  SumShape const leaves{job.replicas, job.schedule.micros_per_update()};
  Schedule schedule = job.delays.empty() ? plan_sequential("serial", leaves) : plan_delayed("serial", job.delays, leaves.inner);
  schedule.sum = job.schedule.sum;
  std::vector<int> first_block{0, int(blocks.size())};
  if (!job.delays.empty()) {
    first_block.resize(blocks.size() + 1);
    std::iota(first_block.begin(), first_block.end(), 0);
  }
  schedule = refine(schedule, blocks, first_block);
  if (twin.abreast() > 1) schedule = side_by_side(std::move(schedule));
  twin.schedule = lower(schedule, blocks, 0, Overlap::off);
  return twin;
}

DryRun dry_run(Job const& job, int rank) {
  auto meta = make_meta_backend();
  Traffic traffic;
  auto world = make_dry_run(rank, job.mesh.ranks(), traffic);
  Mesh mesh(*world, job.mesh, tied_groups(job));
  Ledger ledger;
  Arena arena(meta->reserve(meta_slab, Place::host), ledger);
  ShapesOnly shapes(job, mesh.coordinate(Axis::data));
  ProgramParts parts = program_parts(job, *meta, arena, mesh, shapes);
  parts.values = Values::none;
  Program program(std::move(parts));
  program.advance(warm_windows);
  meta->restart();
  traffic.reset();
  program.advance(counted_windows);
  DryRun out;
  meta->each([&](std::string_view kind, OpCount const& count) {
    out.work.push_back({std::string(kind), count.calls / counted_windows, count.flops / counted_windows, count.bytes / counted_windows});
  });
  for (auto const& [key, count] : traffic.collectives())
    out.collectives.push_back({key.what, std::string(key.purpose), count.calls / counted_windows, count.bytes / counted_windows,
                               count.sent_bytes / counted_windows});
  Traffic::Count const sent = traffic.total(Direction::send);
  out.messages = sent.calls / counted_windows;
  out.message_bytes = sent.bytes / counted_windows;
  program.drain();
  out.slab_bytes = arena.high_water();
  out.peak_total = ledger.peak_total();
  for (std::size_t b = 0; b < books; ++b) out.peak[b] = ledger.peak(Book(b));
  out.stashes = program.peak_stashes();
  return out;
}

Rig::Rig(Job const& job, RigParts parts)
    : job_(job), mesh_(std::make_unique<Mesh>(parts.world, job.mesh, tied_groups(job))), sampler_(job_.sampler()) {
  std::size_t const bytes = dry_run(job_, parts.world.rank()).slab_bytes;
  expect(!parts.slab || parts.slab->bytes >= bytes, "the memory given is smaller than the dry run's");
  arena_ = std::make_unique<Arena>(parts.slab ? *parts.slab : parts.ops.reserve(bytes, Place::host), ledger_);
  std::int64_t first = parts.updates_before / job_.updates_per_batch();
  if (mutant("resume_with_first_shuffle")) first %= sampler_.updates_per_epoch();
  loader_ = std::make_unique<Loader>(*job_.data, sampler_, job_.cut(mesh_->coordinate(Axis::data)), job_.prefetch, first);
  source_ = std::make_unique<FromLoader>(*loader_);
  ProgramParts program = program_parts(job_, parts.ops, *arena_, *mesh_, *source_);
  program.observer = parts.observer;
  program.hooks = std::move(parts.hooks);
  program.updates_before = parts.updates_before;
  program_ = std::make_unique<Program>(std::move(program));
}

}  // namespace shardmark
