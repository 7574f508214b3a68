#include "app/build_job.hpp"

#include <fmt/format.h>

#include "app/coarse_schedule.hpp"
#include "app/data_request.hpp"
#include "app/option_table.hpp"
#include "app/recompute_budget.hpp"
#include "app/recompute_rule.hpp"
#include "data/formats.hpp"

namespace shardmark {
namespace {

constexpr std::int64_t synthetic_classes = 10;
constexpr ImageShape synthetic_image{3, 16, 16};
constexpr char const* data_option = "--data";

/// Synthetic sets hold a few epochs' worth of short updates for proofs, and enough for a run otherwise.
std::int64_t synthetic_samples(Options const& options, int replicas, JobPurpose purpose) {
  std::int64_t const batch = global_batch(options, replicas);
  if (purpose == JobPurpose::proof) return 2 * batch + (batch + 1) / 2;  // the third update of an epoch is short
  return std::max<std::int64_t>(1024, batch * (options.steps + options.warmup));
}

std::shared_ptr<Dataset const> make_synthetic(Options const& options, int replicas, JobPurpose purpose) {
  std::int64_t const samples = synthetic_samples(options, replicas, purpose);
  if (options.model == ModelKind::mlp) return make_synthetic_vectors(options.seed, samples, {options.features}, synthetic_classes);
  if (options.model == ModelKind::convnet)
    return make_synthetic_images(options.seed, samples, {synthetic_image.channels, synthetic_image.height, synthetic_image.width},
                                 synthetic_classes);
  return make_synthetic_tokens(options.seed, samples, options.seq, options.vocab, purpose == JobPurpose::proof ? Ragged::yes : Ragged::no);
}

/// A part of real data.
std::shared_ptr<Dataset const> open_part(Options const& options, DataRequest const& request, DataPart part) {
  switch (request.kind) {
    case DataKind::text:
      return open_text(request.path, options.seq, options.vocab, options.held_out, part);
    case DataKind::tokens:
      return open_tokens(request.path, options.seq, options.vocab, options.held_out, part);
    case DataKind::idx:
      return open_idx(request.path, request.labels, options.held_out, part);
    case DataKind::cifar10:
      return open_cifar10(request.path, part);
    case DataKind::synthetic:
      break;
  }
  fail_input({"--eval needs held-out data", "synthetic data has no held-out part", "give --data text:PATH, tokens, idx or cifar10"});
}

MlpCuts mlp_cuts(Options const& options) {
  switch (options.layer) {
    case LayerAlone::off:
      return MlpCuts::pairs;
    case LayerAlone::column:
      return options.gather_output ? MlpCuts::column_gathered : MlpCuts::column;
    case LayerAlone::row:
      return options.scatter_input ? MlpCuts::row_scattered : MlpCuts::row;
  }
  return MlpCuts::pairs;
}

/// The mlp's ends are those of its samples.
MlpConfig mlp_config(Options const& options, SampleShape const& sample) {
  std::int64_t features = 1;
  for (std::int64_t extent : sample.input) features *= extent;
  require_input(features <= limits::width, {fmt::format("samples of {} numbers", features),
                                            fmt::format("model mlp takes at most {}", limits::width), "give smaller images"});
  return {.layers = options.layers,
          .hidden = options.hidden,
          .features = features,
          .classes = sample.classes,
          .dropout = options.dropout,
          .cuts = mlp_cuts(options)};
}

ConvnetConfig convnet_config(Options const& options, SampleShape const& sample) {
  auto const& image = sample.image;
  return {.layers = options.layers, .hidden = options.hidden, .image = {image[0], image[1], image[2]}, .classes = sample.classes};
}

/// Pieces of two segments don't lie side by side: each has a reduction of its own.
constexpr BucketRule each_segment_alone{.cap_bytes = 1, .first_cap_bytes = 1};

std::vector<int> delays_of_blocks(Lag const& lag, std::vector<int> const& first_block) {
  std::vector<int> out;
  for (std::size_t c = 0; c < lag.of_chunk.size(); ++c)
    out.insert(out.end(), std::size_t(first_block[c + 1] - first_block[c]), lag.of_chunk[c]);
  return out;
}

}  // namespace

SumOrder sum_order(Options const& options) {
  SumOrder sum;
  sum.inside = options.reduce_order;
  sum.micros = options.deterministic || sum.inside == Inside::replicas ? Fold::tree : Fold::loop;
  return sum;
}

namespace {

Schedule refined_schedule(Strategy const& strategy, Options const& options, std::vector<BlockShape> const& blocks, int ranks) {
  Schedule schedule = coarse_schedule(strategy, options, ranks);
  schedule.sum = sum_order(options);
  schedule.sharing = strategy.sharing(options);
  bool const cut = schedule.sharing == Sharing::gradients || schedule.sharing == Sharing::parameters;
  if (cut) schedule.sum = {.inside = Inside::replicas};  // no rank could keep a sum of its own
  return refine(schedule, blocks, partition(options, blocks, int(schedule.lane_of_chunk.size())));
}

/// Gradients in buckets, communication. Refers to its arguments.
Lowering lowering_for(Strategy const& strategy, Options const& options, std::vector<BlockShape> const& blocks, int ranks) {
  return [&, over = strategy.reduced_over(ranks)](Schedule const& recomputing) {
    BucketRule const rule = sum_of(recomputing.sharing) == Collective::reduce_scatter ? each_segment_alone : bucket_rule(options);
    Schedule const bucketed = over != 0 ? bucket(recomputing, blocks, rule) : recomputing;
    return lower(bucketed, blocks, over, options.overlap ? Overlap::on : Overlap::off);
  };
}

/// What is executed: the plan refined to blocks, and what is run again.
/// @param job all but the schedule
Schedule lowered_schedule(Strategy const& strategy, Options const& options, Job const& job, int ranks) {
  auto const blocks = job.model->shapes();
  Lowering const lowering = lowering_for(strategy, options, blocks, ranks);
  Schedule schedule = refined_schedule(strategy, options, blocks, ranks);
  if (memory_budget(options.recompute)) return lowering(recompute_within(options, job, schedule, lowering));
  if (auto const rule = recompute_rule(options, schedule, blocks)) schedule = recompute(schedule, *rule);
  return lowering(schedule);
}

}  // namespace

std::vector<StagePlans> budget_choices(Options const& options, Strategy const& strategy, Job const& job, int ranks) {
  auto const blocks = job.model->shapes();
  return stage_plans(options, job, refined_schedule(strategy, options, blocks, ranks), lowering_for(strategy, options, blocks, ranks));
}

ModelState model_state(Options const& options, SharingForms const& forms) {
  auto const narrow = std::int64_t(width(options.dtype)), wide = std::int64_t(width(accumulator(options.dtype)));
  OptimizerSettings const optimizer = optimizer_settings(options, UpdateOf::batch);
  return {.weights = forms.weights * narrow + (narrow == wide ? 0 : forms.updated * wide),
          .gradients = forms.sums * wide,
          .optimizer = forms.updated * wide * optimizer.states()};
}

BucketRule bucket_rule(Options const& options) {
  BucketRule rule;
  rule.cap_bytes = std::int64_t(options.bucket_mib * 1024 * 1024);
  rule.first_cap_bytes = std::min(rule.first_cap_bytes, rule.cap_bytes);
  rule.element_bytes = width(accumulator(options.dtype));
  return rule;
}

std::shared_ptr<Model const> build_model(Options const& options, SampleShape const& sample, DType dtype, JobPurpose purpose,
                                         TensorPart part) {
  InitialStyle const style = purpose == JobPurpose::proof ? InitialStyle::verifying : InitialStyle::training;
  if (options.model == ModelKind::mlp)
    return std::make_shared<Model const>(make_mlp(mlp_config(options, sample), dtype, options.seed, style, part));
  if (options.model == ModelKind::convnet)
    return std::make_shared<Model const>(make_convnet(convnet_config(options, sample), dtype, options.seed, style));
  return std::make_shared<Model const>(make_gpt({.layers = options.layers,
                                                 .hidden = options.hidden,
                                                 .heads = options.heads,
                                                 .seq = options.seq,
                                                 .vocab = options.vocab,
                                                 .dropout = options.dropout,
                                                 .tied = options.tied_embeddings ? Tied::yes : Tied::no},
                                                dtype, options.seed, style, part));
}

std::shared_ptr<Dataset const> build_dataset(Options const& options, int replicas, JobPurpose purpose) {
  DataRequest const request = parse_data(options.data, data_option);
  if (request.kind == DataKind::synthetic) return make_synthetic(options, replicas, purpose);
  return open_part(options, request, DataPart::training);
}

std::shared_ptr<Dataset const> build_held_out(Options const& options) {
  return open_part(options, parse_data(options.data, data_option), DataPart::held_out);
}

OptimizerSettings optimizer_settings(Options const& options, UpdateOf update) {
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
  out.rate.updates = (options.steps + options.warmup) * (update == UpdateOf::micro ? options.micros : 1);
  return out;
}

Job build_job(Options const& options, Strategy const& strategy, int ranks, DType dtype, JobPurpose purpose,
              std::shared_ptr<Dataset const> data) {
  if (auto refusal = strategy.refuse(options, ranks)) fail_input(*refusal);
  Job job;
  job.mesh = strategy.mesh(options, ranks);
  require_fit(options, job.mesh.data);
  job.model = build_model(options, data->shape(), dtype, purpose);
  int const parts = job.mesh.tensor;
  TokenRows const rows = options.sequence_parallel ? TokenRows::cut : TokenRows::whole;
  auto const part = [&](int p) { return build_model(options, data->shape(), dtype, purpose, {parts, p, rows, options.tp_chunks}); };
  for (int p = 0; parts > 1 && p < parts; ++p) job.parts.push_back(part(p));
  if (parts > 1) job.in_parts = part(TensorPart::all_parts);
  job.data = std::move(data);
  auto const blocks = job.model->shapes();
  job.global_batch = global_batch(options, job.mesh.data);
  job.seed = options.seed;
  job.replicas = job.mesh.data;
  job.micros = options.micros;
  job.batch_norm = options.batch_norm;
  Lag const lag = strategy.lag(options, ranks);
  job.update = lag.update;
  job.delays = delays_of_blocks(lag, partition(options, blocks, int(coarse_schedule(strategy, options, ranks).lane_of_chunk.size())));
  job.optimizer = optimizer_settings(options, job.update);
  job.reduction = options.deterministic ? Reduction::fixed_tree : Reduction::vendor;
  job.schedule = lowered_schedule(strategy, options, job, ranks);
  check(job.schedule, blocks);
  return job;
}

Options reduced_twin(Options options, int chunks, int parts) {
  // Odd sizes, ragged counts and short updates: nothing divides by accident (docs/method.md).
  options.data = "synthetic";
  options.warmup = 0;
  options.features = 64;
  options.layers = std::max(2, chunks);  // a block for each chunk of a pipeline
  options.balance = "auto";
  options.split_points.clear();
  options.forward_seconds.reset();
  if (memory_budget(options.recompute)) options.recompute = "budget:least";  // the timed run's MiB are nothing here
  options.hidden = options.model == ModelKind::convnet ? 7 : 48 * parts;
  options.heads = 3 * parts;
  options.seq = options.sequence_parallel ? 5 * parts : 17;
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
