#pragma once
// Small jobs of the centralised way, and their proof on thread ranks.

#include "strategies/dp/dp.hpp"
#include "validation/equivalence/ddp/rigs.hpp"
#include "verify/verify.hpp"

namespace shardmark::testing {

/// A gpt with tied weights on ragged data; several buckets, some of more than one segment.
inline Options small_dp(std::int64_t batch, int micros = 1) {
  Options o;
  o.program = "dp";
  o.layers = 1;
  o.hidden = 12;
  o.heads = 3;
  o.seq = 5;
  o.vocab = 31;
  o.tied_embeddings = true;
  o.batch = batch;
  o.micros = micros;
  o.steps = 4;
  o.lr = 0.1;
  o.bucket_mib = 0.004;
  o.data = "synthetic";
  o.deterministic = true;
  return o;
}

inline Job dp_job(Options const& options, int ranks, DType dtype = DType::f32) {
  return build_job(options, *make_dp(), ranks, dtype, JobPurpose::proof, build_dataset(options, ranks, JobPurpose::proof));
}

/// As forwards read them, which every rank has.
inline std::vector<double> used_weights(Program& program) {
  program.stream().synchronize();
  std::vector<double> out;
  for (UnitId unit : program.store().held()) {
    View const flat = program.store().flat(Part::compute, unit, program.store().latest(unit));
    auto const values = values_of(slice(flat, 0, 0, program.parts().model.spec[unit].elements));
    out.insert(out.end(), values.begin(), values.end());
  }
  return out;
}

/// Every rank's after `updates` updates.
inline std::vector<std::vector<double>> weights_after(Job const& job, std::int64_t updates) {
  std::vector<std::vector<double>> out(std::size_t(job.mesh.ranks()));
  on_ranks(job, [&](Rig& rig, int rank) {
    rig.program().advance(updates);
    out[std::size_t(rank)] = used_weights(rig.program());
    rig.program().drain();
  });
  return out;
}

inline Verification prove_dp(Options const& options, int ranks) {
  VerifyRequest request;
  request.strategy = options.program;
  request.make_job = [&](DType dtype) { return dp_job(options, ranks, dtype); };
  request.dtype = options.dtype;
  request.steps = options.steps;
  request.candidate_backend = [](DType) { return make_cpu_backend(Determinism::deterministic); };
  request.reference_backend = [] { return make_reference_backend(); };
  Verification out;
  run_thread_ranks(ranks, [&](Communicator& world) {
    Verification mine = verify(request, world);
    if (world.rank() == 0) out = std::move(mine);
  });
  return out;
}

}  // namespace shardmark::testing
