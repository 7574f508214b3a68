#pragma once
// Jobs from options, run on thread ranks: what the programs do, without the programs.

#include <functional>
#include <mutex>
#include <vector>

#include "app/build_job.hpp"
#include "comm/fabric.hpp"
#include "strategies/ddp/ddp.hpp"
#include "strategies/serial/serial.hpp"
#include "validation/equivalence/core/harness.hpp"

namespace shardmark::testing {

/// A small deterministic mlp run of `batch` samples an update.
inline Options small_mlp(std::int64_t batch) {
  Options o;
  o.program = "ddp";
  o.model = ModelKind::mlp;
  o.layers = 2;
  o.hidden = 12;
  o.batch = batch;
  o.lr = 0.1;
  o.data = "synthetic";
  o.deterministic = true;
  return o;
}

inline Job ddp_job(Options const& options, int ranks, DType dtype = DType::f32) {
  return build_job(options, *make_ddp(), ranks, dtype, JobPurpose::proof, build_dataset(options, ranks, JobPurpose::proof));
}

/// All weights of a program, unit after unit.
inline std::vector<double> all_weights(Program& program) {
  std::vector<double> out;
  for (UnitId unit : program.store().held()) {
    auto const values = weights_of(program, unit);
    out.insert(out.end(), values.begin(), values.end());
  }
  return out;
}

/// Runs `body(rig, rank)` on thread ranks of the job; `wrap` may put a decorator around each rank's world.
using Wrap = std::function<std::unique_ptr<Communicator>(Communicator&)>;
inline void on_ranks(Job const& job, std::function<void(Rig&, int)> const& body, std::vector<Hook*> const& hooks = {},
                     Wrap const& wrap = {}) {
  run_thread_ranks(job.mesh.ranks(), [&](Communicator& world) {
    auto ops = make_reference_backend();
    auto wrapped = wrap ? wrap(world) : nullptr;
    std::vector<Hook*> mine;
    if (!hooks.empty()) mine.push_back(hooks[std::size_t(world.rank())]);
    Rig rig(job, {.ops = *ops, .world = wrapped ? *wrapped : world, .hooks = mine});
    body(rig, world.rank());
  });
}

/// Every rank's weights after `windows` updates.
inline std::vector<std::vector<double>> train(Job const& job, std::int64_t windows, Wrap const& wrap = {}) {
  std::vector<std::vector<double>> out(std::size_t(job.mesh.ranks()));
  on_ranks(
      job,
      [&](Rig& rig, int rank) {
        rig.program().advance(windows);
        out[std::size_t(rank)] = all_weights(rig.program());
        rig.program().drain();
      },
      {}, wrap);
  return out;
}

}  // namespace shardmark::testing
