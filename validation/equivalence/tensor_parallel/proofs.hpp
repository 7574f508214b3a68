#pragma once
// Tensor-parallel jobs from options, proven on thread ranks as `tensor_parallel verify` proves them.

#include "strategies/tensor_parallel/tensor_parallel.hpp"
#include "validation/equivalence/ddp/rigs.hpp"
#include "verify/verify.hpp"

namespace shardmark::testing {

/// Two blocks of `heads` heads of width 3, ragged data.
inline Options small_gpt(std::int64_t heads) {
  Options o;
  o.program = "tensor_parallel";
  o.layers = 2;
  o.heads = heads;
  o.hidden = 3 * heads;
  o.seq = 5;
  o.vocab = 31;
  o.batch = 5;
  o.steps = 3;
  o.lr = 0.1;
  o.data = "synthetic";
  o.deterministic = true;
  return o;
}

inline Job tensor_job(Options const& options, int ranks, DType dtype = DType::f32) {
  return build_job(options, *make_tensor_parallel(), ranks, dtype, JobPurpose::proof, build_dataset(options, 1, JobPurpose::proof));
}

inline Verification prove(std::function<Job(DType)> make_job, std::int64_t steps, int ranks, std::vector<TrafficForm> traffic) {
  VerifyRequest request;
  request.traffic = std::move(traffic);
  request.strategy = "tensor_parallel";
  request.make_job = std::move(make_job);
  request.steps = steps;
  request.candidate_backend = [](DType) { return make_cpu_backend(Determinism::deterministic); };
  request.reference_backend = [] { return make_reference_backend(); };
  Verification out;
  run_thread_ranks(ranks, [&](Communicator& world) {
    Verification mine = verify(request, world);
    if (world.rank() == 0) out = std::move(mine);
  });
  return out;
}

inline Verification prove(Options const& options, int ranks) {
  auto const blocks = tensor_job(options, ranks).model->shapes();
  return prove([=](DType dtype) { return tensor_job(options, ranks, dtype); }, options.steps, ranks,
               make_tensor_parallel()->predict(options, blocks, ranks).traffic);
}

}  // namespace shardmark::testing
