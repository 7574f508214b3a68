#include "app/build_job.hpp"

#include <fmt/format.h>

namespace shardmark {
namespace {

constexpr std::int64_t mlp_features = 64, mlp_classes = 10;
constexpr std::string_view text_prefix = "text:";

bool is_text(Options const& options) { return options.data.starts_with(text_prefix); }

/// Synthetic sets hold a few epochs' worth of short updates for proofs, and enough for a run otherwise.
std::int64_t synthetic_samples(Options const& options, int replicas, JobPurpose purpose) {
  std::int64_t const batch = global_batch(options, replicas);
  if (purpose == JobPurpose::proof) return 2 * batch + (batch + 1) / 2;  // the third update of an epoch is short
  return std::max<std::int64_t>(1024, batch * (options.steps + options.warmup));
}

}  // namespace

SumOrder sum_order(Options const& options) {
  SumOrder sum;
  sum.micros = options.deterministic ? Fold::tree : Fold::loop;
  return sum;
}

Schedule lowered_schedule(Strategy const& strategy, Options const& options, std::vector<BlockShape> const& blocks, int ranks) {
  Schedule schedule = strategy.plan(options, ranks);
  schedule.sum = sum_order(options);
  schedule = refine(schedule, blocks, {0, int(blocks.size())});
  if (strategy.reduced_over() != 0) schedule = bucket(schedule, blocks, bucket_rule(options));
  return lower(schedule, blocks, strategy.reduced_over(), options.overlap ? Overlap::on : Overlap::off);
}

BucketRule bucket_rule(Options const& options) {
  BucketRule rule;
  rule.cap_bytes = std::int64_t(options.bucket_mib * 1024 * 1024);
  rule.first_cap_bytes = std::min(rule.first_cap_bytes, rule.cap_bytes);
  rule.element_bytes = width(accumulator(options.dtype));
  return rule;
}

std::shared_ptr<Model const> build_model(Options const& options, DType dtype, JobPurpose purpose) {
  InitialStyle const style = purpose == JobPurpose::proof ? InitialStyle::verifying : InitialStyle::training;
  if (options.model == ModelKind::mlp)
    return std::make_shared<Model const>(make_mlp(
        {.layers = options.layers, .hidden = options.hidden, .features = mlp_features, .classes = mlp_classes, .dropout = options.dropout},
        dtype, options.seed, style));
  return std::make_shared<Model const>(make_gpt({.layers = options.layers,
                                                 .hidden = options.hidden,
                                                 .heads = options.heads,
                                                 .seq = options.seq,
                                                 .vocab = options.vocab,
                                                 .dropout = options.dropout,
                                                 .tied = options.tied_embeddings ? Tied::yes : Tied::no},
                                                dtype, options.seed, style));
}

std::shared_ptr<Dataset const> build_dataset(Options const& options, int replicas, JobPurpose purpose) {
  if (is_text(options))
    return open_text(options.data.substr(text_prefix.size()), options.seq, options.vocab, options.held_out, DataPart::training);
  std::int64_t const samples = synthetic_samples(options, replicas, purpose);
  if (options.model == ModelKind::mlp) return make_synthetic_vectors(options.seed, samples, {mlp_features}, mlp_classes);
  return make_synthetic_tokens(options.seed, samples, options.seq, options.vocab, purpose == JobPurpose::proof ? Ragged::yes : Ragged::no);
}

std::shared_ptr<Dataset const> build_held_out(Options const& options) {
  if (is_text(options))
    return open_text(options.data.substr(text_prefix.size()), options.seq, options.vocab, options.held_out, DataPart::held_out);
  fail_input({"--eval needs held-out data", "synthetic data has no held-out part", "give --data text:PATH"});
}

OptimizerSettings optimizer_settings(Options const& options) {
  OptimizerSettings out;
  out.rule = options.optimizer == OptimizerKind::adamw ? Rule::adamw : Rule::sgd;
  out.momentum = options.momentum;
  out.form = options.nesterov ? Momentum::nesterov : Momentum::classic;
  out.weight_decay = options.weight_decay;
  out.clip_norm = options.clip_norm;
  out.rate.base = options.lr;
  out.rate.shape = options.lr_schedule == LrSchedule::linear   ? RateShape::linear
                   : options.lr_schedule == LrSchedule::cosine ? RateShape::cosine
                                                               : RateShape::constant;
  out.rate.updates = options.steps + options.warmup;
  return out;
}

Job build_job(Options const& options, Strategy const& strategy, int ranks, DType dtype, JobPurpose purpose,
              std::shared_ptr<Dataset const> data) {
  if (auto refusal = strategy.refuse(options, ranks)) fail_input(*refusal);
  Job job;
  job.mesh = strategy.mesh(options, ranks);
  require_fit(options, job.mesh.data);
  job.model = build_model(options, dtype, purpose);
  job.data = std::move(data);
  auto const blocks = job.model->shapes();
  job.schedule = lowered_schedule(strategy, options, blocks, ranks);
  check(job.schedule, blocks);
  job.global_batch = global_batch(options, job.mesh.data);
  job.seed = options.seed;
  job.replicas = job.mesh.data;
  job.micros = options.micros;
  job.optimizer = optimizer_settings(options);
  job.reduction = options.deterministic ? Reduction::fixed_tree : Reduction::vendor;
  return job;
}

Options reduced_twin(Options options) {
  // Odd sizes, ragged counts and short updates: nothing divides by accident (docs/method.md).
  options.data = "synthetic";
  options.warmup = 0;
  options.layers = 2;
  options.hidden = 48;
  options.heads = 3;
  options.seq = 17;
  options.vocab = 61;
  options.bucket_mib = std::min(options.bucket_mib, 0.0625);  // several buckets, as in the timed run
  return options;
}

std::unique_ptr<Backend> build_backend(Options const& options, Determinism determinism) {
  switch (options.backend) {
    case BackendKind::reference:
      return make_reference_backend();
    case BackendKind::cpu:
      return make_cpu_backend(determinism);
    case BackendKind::cuda:
      return make_cuda_backend();
  }
  return nullptr;
}

}  // namespace shardmark
