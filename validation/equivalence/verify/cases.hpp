#pragma once
// Small jobs that are proven: serial and data parallel, mlp, gpt and convnet, with random biases and gains and ragged counts, so that no
// fault hides behind a zero.

#include "model/zoo.hpp"
#include "verify/verify.hpp"

namespace shardmark::testing {

enum class Net : std::uint8_t { mlp, gpt, gpt_tied, convnet };

enum class Recompute : std::uint8_t { no, all };

struct Case {
  Net net = Net::mlp;
  int replicas = 1, micros = 1;
  std::int64_t batch = 10;
  OptimizerSettings optimizer = {.rate = {.base = 0.1}};
  std::uint64_t seed = 1;
  DType dtype = DType::f32;
  std::int64_t steps = 5;
  Determinism determinism = Determinism::deterministic;
  BatchNormPolicy batch_norm = BatchNormPolicy::per_micro;
  Recompute recompute = Recompute::no;
  Sharing sharing = Sharing::replicated;
};

/// `ddp` made by hand: each rank one replica; buckets of a few parameters, reduced while backward runs. One replica: `serial`.
Job make_job(Case const& c, DType dtype);
VerifyRequest request(Case const& c);
/// Proves on thread ranks; all ranks must come to the same result, which is returned.
Verification prove(VerifyRequest const& request, int ranks);
Verification prove(Case const& c);

/// The check of one tensor in one part; fails the test when there is none.
Check const& find(Verification const& result, std::string const& part, std::string const& tensor);

}  // namespace shardmark::testing
