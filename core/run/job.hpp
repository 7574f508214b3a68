#pragma once
// A job: everything that all ranks agree on before anything runs. A Rig is one rank of it: memory sized by a dry run, mesh, loader
// and executor.

#include <array>
#include <functional>
#include <memory>
#include <optional>

#include "comm/mesh.hpp"
#include "data/dataset.hpp"
#include "run/program.hpp"
#include "run/scattered_batches.hpp"
#include "schedule/check.hpp"

namespace shardmark {

struct Job {
  std::shared_ptr<Model const> model;  // whole, as one process has it: what proofs are held against
  /// Tensor parallelism: what the ranks of a tensor group hold, by coordinate; empty: each has the whole.
  std::vector<std::shared_ptr<Model const>> parts = {};
  /// The whole again, in layers that add up as those of `parts` do: for a twin with the same bits. Absent without parts.
  std::shared_ptr<Model const> in_parts = {};
  std::shared_ptr<Dataset const> data;
  Schedule schedule;  // lowered
  MeshShape mesh;
  std::int64_t global_batch = 8;
  std::uint64_t seed = 1;           // of shuffles; the model has its own
  int replicas = 1;                 // pieces of the global batch that the job as a whole processes
  int micros = 1;                   // pieces of each replica's part
  bool plays_all_replicas = false;  // a serial twin: one process, all replicas one after the other
  int plays_parts = 1;              // a serial twin that adds as this many tensor-parallel ranks do
  UpdateOf update = UpdateOf::batch;
  std::vector<int> delays = {};  // by block: updates by which the weights that it reads lag behind the latest; empty: none does
  OptimizerSettings optimizer;
  Reduction reduction = Reduction::fixed_tree;
  BatchNormPolicy batch_norm = BatchNormPolicy::per_micro;
  int prefetch = 2;

  /// How the rank with data coordinate `replica` reads.
  Cut cut(int replica) const {
    return {.replicas = replicas, .replica = replica, .micros = micros, .all_replicas = plays_all_replicas, .update = update};
  }
  /// Replicas whose statistics one process merges, block by block.
  int abreast() const { return plays_all_replicas && batch_norm == BatchNormPolicy::sync ? replicas : 1; }
  /// Windows of the schedule that one global batch makes.
  int updates_per_batch() const { return update == UpdateOf::micro ? micros : 1; }
  Model const& model_of(int tensor_coordinate) const { return parts.empty() ? *model : *parts[std::size_t(tensor_coordinate)]; }
  /// Rank 0 reads for all.
  bool scatters() const { return schedule.sharing == Sharing::root && mesh.data > 1; }
  ScatterLayout scatter_layout() const { return {data->shape(), global_batch, replicas, micros}; }
  Sampler sampler() const { return Sampler(data->size(), global_batch, seed); }
};

/// The serial twin of a job: one rank, the same leaves under the same SumOrder (validation rule 2), the same delays (rule 16). With
/// synchronised batch normalisation its replicas go through each block side by side (rule 15).
/// whole: it knows nothing of tensor parallelism. as_parts: products that tensor-parallel ranks add up are made in the same pieces and
/// added in the same order, so that it comes to the same bits.
enum class Products : std::uint8_t { whole, as_parts };
Job serial_twin(Job const& job, Products products = Products::whole);

/// What a rank will need and move, found by running its program on shapes alone, without MPI.
struct DryRun {
  std::size_t slab_bytes = 0;
  std::array<std::int64_t, books> peak{};  // by category
  std::int64_t peak_total = 0;
  struct Work {
    std::string kind;  // of operation
    std::uint64_t calls = 0;
    double flops = 0, bytes = 0;
  };
  std::vector<Work> work;  // per global batch
  int stashes = 0;
  struct Traffic {
    Collective what{};
    std::string purpose;
    Axes axes = 0;
    std::int64_t calls = 0, bytes = 0, sent_bytes = 0;  // per global batch: of the arrays that were given; that a ring would send
    std::int64_t received_bytes = 0;                    // by the same
  };
  std::vector<Traffic> collectives;
  std::int64_t message_bytes = 0, messages = 0;  // sent per global batch
};
/// @param hook may be absent; the program's backend is the meta backend
DryRun dry_run(Job const& job, int rank, Hook* hook = nullptr);
/// The named groups of the mesh that a schedule's lanes meet in: holders of tied units, all lanes for deferred decisions.
std::vector<NamedGroup> named_groups(Schedule const& schedule, std::vector<BlockShape> const& blocks);
/// Global batches after which a run has taken all the memory that it ever takes.
std::int64_t batches_to_warm(Job const& job);

struct RigParts {
  Backend& ops;
  Communicator& world;
  Observer* observer = nullptr;
  std::vector<Hook*> hooks = {};
  std::int64_t updates_before = 0;  // of the run that this one goes on from
  std::optional<Region> slab = {};  // of at least dry_run().slab_bytes, for instance memory that peers can address; absent: the backend's
};

class Rig {
 public:
  Rig(Job const& job, RigParts parts);
  Rig(Rig const&) = delete;
  Program& program() { return *program_; }
  Mesh& mesh() { return *mesh_; }
  Arena& arena() { return *arena_; }
  Ledger& ledger() { return ledger_; }
  Job const& job() const { return job_; }
  /// Time in which steps were blocked on data.
  double data_blocked_seconds() const { return scattered_ ? scattered_->blocked_seconds() : loader_->blocked_seconds(); }

 private:
  Job job_;
  Ledger ledger_;
  std::unique_ptr<Mesh> mesh_;
  std::unique_ptr<Arena> arena_;
  Sampler sampler_;
  std::unique_ptr<Loader> loader_;  // absent where rank 0 reads for this one
  std::unique_ptr<BatchSource> source_;
  std::unique_ptr<ScatteredBatches> scattered_;
  std::unique_ptr<Program> program_;
};

}  // namespace shardmark
