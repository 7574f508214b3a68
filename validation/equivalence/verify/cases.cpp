#include "cases.hpp"

#include <gtest/gtest.h>

#include <mutex>

#include "comm/fabric.hpp"

namespace shardmark::testing {
namespace {

constexpr std::int64_t samples = 64;

std::shared_ptr<Model const> make_model(Case const& c, DType dtype) {
  if (c.net == Net::mlp)
    return std::make_shared<Model const>(
        make_mlp({.layers = 2, .hidden = 24, .features = 16, .classes = 7}, dtype, c.seed, InitialStyle::verifying));
  if (c.net == Net::convnet)
    return std::make_shared<Model const>(
        make_convnet({.layers = 2, .hidden = 5, .image = {3, 7, 6}, .classes = 7}, dtype, c.seed, InitialStyle::verifying));
  GptConfig const config{
      .layers = 2, .hidden = 48, .heads = 3, .seq = 17, .vocab = 61, .tied = c.net == Net::gpt_tied ? Tied::yes : Tied::no};
  return std::make_shared<Model const>(make_gpt(config, dtype, c.seed, InitialStyle::verifying));
}

std::shared_ptr<Dataset const> make_data(Case const& c) {
  if (c.net == Net::mlp) return make_synthetic_vectors(c.seed, samples, {16}, 7);
  if (c.net == Net::convnet) return make_synthetic_images(c.seed, samples, {3, 7, 6}, 7);
  return make_synthetic_tokens(c.seed, samples, 17, 61, Ragged::yes);
}

}  // namespace

Job make_job(Case const& c, DType dtype) {
  Job job;
  job.model = make_model(c, dtype);
  job.data = make_data(c);
  job.mesh.data = c.replicas;
  job.global_batch = c.batch;
  job.seed = c.seed;
  job.replicas = c.replicas;
  job.micros = c.micros;
  job.optimizer = c.optimizer;
  job.batch_norm = c.batch_norm;
  auto const blocks = job.model->shapes();
  Schedule schedule = refine(plan_sequential(c.replicas > 1 ? "ddp" : "serial", c.micros), blocks, {0, int(blocks.size())});
  if (c.recompute == Recompute::all) schedule = recompute(schedule, recompute_all());
  if (c.replicas == 1) {
    job.schedule = lower(schedule, blocks, 0, Overlap::off);
  } else {
    BucketRule rule{.cap_bytes = 64 << 10, .first_cap_bytes = 8 << 10, .element_bytes = width(dtype)};
    schedule.sharing = c.sharing;
    if (c.sharing != Sharing::replicated) rule = {.cap_bytes = 1, .first_cap_bytes = 1};
    if (c.sharing == Sharing::gradients || c.sharing == Sharing::parameters) schedule.sum.inside = Inside::replicas;
    schedule = bucket(schedule, blocks, rule);
    job.schedule = lower(schedule, blocks, axes(Axis::data), Overlap::on);
  }
  return job;
}

VerifyRequest request(Case const& c) {
  VerifyRequest out;
  out.strategy = c.replicas > 1 ? "ddp" : "serial";
  out.make_job = [c](DType dtype) { return make_job(c, dtype); };
  out.dtype = c.dtype;
  out.steps = c.steps;
  out.candidate_backend = [c](DType) { return make_cpu_backend(c.determinism); };
  out.reference_backend = [] { return make_reference_backend(); };
  return out;
}

Verification prove(VerifyRequest const& request, int ranks) {
  std::mutex mutex;
  std::vector<Verification> results;
  run_thread_ranks(ranks, [&](Communicator& world) {
    Verification mine = verify(request, world);
    std::lock_guard const lock(mutex);
    results.push_back(std::move(mine));
  });
  EXPECT_EQ(results.size(), std::size_t(ranks));
  for (Verification& r : results) {
    r.seconds = 0;
    EXPECT_EQ(to_json(r, {}), to_json(results.front(), {}));
  }
  return results.front();
}

Verification prove(Case const& c) { return prove(request(c), c.replicas); }

Check const& find(Verification const& result, std::string const& part, std::string const& tensor) {
  for (Check const& check : result.checks)
    if (check.part == part && check.tensor == tensor) return check;
  ADD_FAILURE() << "no check of " << tensor << " in " << part;
  static Check const none{};
  return none;
}

}  // namespace shardmark::testing
