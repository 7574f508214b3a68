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

/// Micro-batches without content, in the sizes that the sampler gives: whole batches, then the short one that ends an epoch. Ragged pieces
/// lie in memory in another way than whole ones, and may need more of it. Of a long epoch only `most` batches are played.
class ShapesOnly final : public BatchSource {
 public:
  ShapesOnly(Job const& job, int replica, std::int64_t most) {
    std::int64_t const samples = job.data->size(), rows = std::min(job.global_batch, samples), rest = samples % rows;
    cut(job, replica, rows, whole_);
    cut(job, replica, rest > 0 ? rest : rows, short_);
    period_ = std::min((samples + rows - 1) / rows, most);
  }
  /// Whole batches from here on.
  void end_epochs() { period_ = 0; }
  std::int64_t period() const { return period_; }
  HostBatch const& next() override {
    std::size_t const at = at_++, piece = at % whole_.size();
    bool const ends_epoch = period_ > 0 && std::int64_t(at / whole_.size()) % period_ == period_ - 1;
    return ends_epoch ? short_[piece] : whole_[piece];
  }

 private:
  static void cut(Job const& job, int replica, std::int64_t rows, std::vector<HostBatch>& out) {
    int const first = job.plays_all_replicas ? 0 : replica, last = job.plays_all_replicas ? job.replicas : replica + 1;
    for (int r = first; r < last; ++r)
      for (int k = 0; k < job.micros; ++k) {
        HostBatch batch;
        batch.rows = piece_of(piece_of(rows, job.replicas, r).size(), job.micros, k).size();
        batch.window_counted = 1;
        out.push_back(std::move(batch));
      }
  }
  std::vector<HostBatch> whole_, short_;
  std::size_t at_ = 0;
  std::int64_t period_ = 0;  // batches of an epoch
};

int lane_of(Mesh const& mesh) { return mesh.coordinate(Axis::pipeline); }

ProgramParts program_parts(Job const& job, Backend& ops, Arena& arena, Mesh& mesh, BatchSource& source) {
  return {.model = job.model_of(mesh.coordinate(Axis::tensor)),
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
          .abreast = job.abreast(),
          .tensor_parts = job.plays_parts};
}

ScatterParts scatter_parts(Job const& job, Mesh& mesh, BatchSource* source, Values values, Arena& arena, Backend& ops) {
  return {mesh.over(axes(Axis::data)), job.scatter_layout(), source, values, arena, ops};
}

/// What this rank reads: its own micro-batches, or, where rank 0 reads for all, everybody's or nothing.
std::optional<Cut> cut_of(Job const& job, int replica) {
  if (!job.scatters()) return job.cut(replica);
  if (replica > 0) return std::nullopt;
  Cut all = job.cut(0);
  all.all_replicas = true;
  return all;
}

constexpr std::size_t meta_slab = std::size_t(1) << 42;  // of address space; many thread ranks may plan at once
constexpr std::int64_t warm_batches = 2, counted_batches = 2;

}  // namespace

std::vector<NamedGroup> named_groups(Schedule const& schedule, std::vector<BlockShape> const& blocks) {
  std::vector<NamedGroup> out;
  for (TiedUnit const& tied : tied_units(blocks, schedule.lane_of_chunk))
    if (tied.shared()) out.push_back({tied_group(tied.unit), tied.holders()});
  if (!schedule.defers()) return out;
  out.push_back({decision_group, std::vector<int>(schedule.lanes.size())});
  std::iota(out.back().stages.begin(), out.back().stages.end(), 0);
  return out;
}

std::int64_t batches_to_warm(Job const& job) {
  std::int64_t const lag = job.delays.empty() ? 0 : *std::max_element(job.delays.begin(), job.delays.end());
  std::int64_t const depth = lag + (job.schedule.synchronous() ? 0 : std::int64_t(job.schedule.lanes.size()));
  return warm_batches + (depth + job.updates_per_batch() - 1) / job.updates_per_batch();
}

Job serial_twin(Job const& job, Products products) {
  expect(job.schedule.synchronous() || !job.delays.empty(), "an asynchronous job says by how much its weights lag");
  Job twin = job;
  if (products == Products::as_parts && job.in_parts) {
    twin.model = job.in_parts;
    twin.plays_parts = int(job.parts.size());
  }
  twin.parts.clear();
  twin.in_parts.reset();
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

DryRun dry_run(Job const& job, int rank, Hook* hook) {
  auto meta = make_meta_backend();
  Traffic traffic;
  auto world = make_dry_run(rank, job.mesh.ranks(), traffic);
  Mesh mesh(*world, job.mesh, named_groups(job.schedule, job.model->shapes()));
  Ledger ledger;
  Arena arena(meta->reserve(meta_slab, Place::host), ledger);
  std::int64_t const warm = batches_to_warm(job);
  ShapesOnly shapes(job, mesh.coordinate(Axis::data), warm + 1);
  std::optional<ScatteredBatches> scattered;
  if (job.scatters()) scattered.emplace(scatter_parts(job, mesh, &shapes, Values::none, arena, *meta));
  ProgramParts parts = program_parts(job, *meta, arena, mesh, scattered ? static_cast<BatchSource&>(*scattered) : shapes);
  parts.values = Values::none;
  if (hook != nullptr) parts.hooks = {hook};
  Program program(std::move(parts));
  program.advance((warm + shapes.period()) * job.updates_per_batch());
  DryRun out;
  out.peak_total = ledger.peak_total();
  for (std::size_t b = 0; b < books; ++b) out.peak[b] = ledger.peak(Book(b));
  shapes.end_epochs();
  meta->restart();
  traffic.reset();
  program.advance(counted_batches * job.updates_per_batch());
  meta->each([&](std::string_view kind, OpCount const& count) {
    out.work.push_back({std::string(kind), count.calls / counted_batches, count.flops / counted_batches, count.bytes / counted_batches});
  });
  for (auto const& [key, count] : traffic.collectives())
    out.collectives.push_back({key.what, std::string(key.purpose), key.axes, count.calls / counted_batches, count.bytes / counted_batches,
                               count.sent_bytes / counted_batches, count.received_bytes / counted_batches});
  Traffic::Count const sent = traffic.total(Direction::send);
  out.messages = sent.calls / counted_batches;
  out.message_bytes = sent.bytes / counted_batches;
  program.drain();
  out.slab_bytes = arena.high_water();
  // Without a flush, micro-batches of other sizes than these may meet and leave gaps between them.
  if (!job.schedule.synchronous()) out.slab_bytes += std::size_t(ledger.peak(Book::activations) + ledger.peak(Book::data));
  out.stashes = program.peak_stashes();
  return out;
}

Rig::Rig(Job const& job, RigParts parts)
    : job_(job),
      mesh_(std::make_unique<Mesh>(parts.world, job.mesh, named_groups(job.schedule, job.model->shapes()))),
      sampler_(job_.sampler()) {
  std::size_t const bytes = dry_run(job_, parts.world.rank()).slab_bytes;
  expect(!parts.slab || parts.slab->bytes >= bytes, "the memory given is smaller than the dry run's");
  arena_ = std::make_unique<Arena>(parts.slab ? *parts.slab : parts.ops.reserve(bytes, Place::host), ledger_);
  std::int64_t first = parts.updates_before / job_.updates_per_batch();
  if (mutant("resume_with_first_shuffle")) first %= sampler_.updates_per_epoch();
  if (auto const cut = cut_of(job_, mesh_->coordinate(Axis::data))) {
    int const ahead = job_.scatters() ? job_.prefetch * job_.replicas : job_.prefetch;
    loader_ = std::make_unique<Loader>(*job_.data, sampler_, *cut, ahead, first);
    source_ = std::make_unique<FromLoader>(*loader_);
  }
  if (job_.scatters())
    scattered_ = std::make_unique<ScatteredBatches>(scatter_parts(job_, *mesh_, source_.get(), Values::real, *arena_, parts.ops));
  ProgramParts program = program_parts(job_, parts.ops, *arena_, *mesh_, scattered_ ? static_cast<BatchSource&>(*scattered_) : *source_);
  program.observer = parts.observer;
  program.hooks = std::move(parts.hooks);
  program.updates_before = parts.updates_before;
  program_ = std::make_unique<Program>(std::move(program));
}

}  // namespace shardmark
