#include "verify/candidate.hpp"

#include <algorithm>
#include <cstring>

namespace shardmark {
namespace {

Comparison empty_comparison(CandidateParts const& parts) {
  std::size_t const tensors = parts.envelope.size();
  Comparison out{.part = parts.part,
                 .type = parts.dtype,
                 .catalogue = parts.catalogue,
                 .findings = std::vector<Finding>(tensors),
                 .largest = std::vector<double>(tensors),
                 .largest_bound = std::vector<double>(tensors),
                 .factor_bound = std::vector<double>(tensors),
                 .counts = Counts{parts.job.replicas, parts.job.micros, parts.job.mesh.tensor}};
  for (std::size_t t = 0; t < tensors; ++t) {
    out.largest[t] = parts.envelope[t].largest;
    out.largest_bound[t] = parts.envelope[t].largest_bound(parts.dtype);
    if (parts.dtype == DType::bf16) out.factor_bound[t] = parts.envelope[t].bfloat16_factor;
  }
  return out;
}

/// The micro-batches of this rank among its twin's: data rank r has the r-th run of them.
MicroSpan own_micros(Job const& job, int rank) {
  int const replica = rank / job.mesh.tensor % job.mesh.data;
  int const micros = job.schedule.micros_per_update();
  return {replica * micros, micros};
}

bool same_bytes(View const& a, std::byte const* b) { return std::memcmp(a.data, b, a.bytes()) == 0; }

}  // namespace

void Compare::take(Piece const& piece) {
  TensorEnvelope const& tensor = envelope_[std::size_t(piece.tensor)];
  Finding& finding = out_.findings[std::size_t(piece.tensor)];
  if (!piece.fits()) {
    finding.misfit += 1;
    return;
  }
  each_value(piece.values, [&](std::int64_t i, double x) {
    std::int64_t const at = piece.index(i);
    finding.compare(x, tensor.reference[std::size_t(at)], tensor.bound(at, type_), at);
  });
  if (piece.before) finding.not_updated = same_bytes(piece.values, piece.before.data) ? 1 : 0;
}

void PartialSums::before(Program& program, Action const& action, std::int64_t window) {
  if (window == 0 && action.what == Do::post) keep(program, action.token);
  if (makes_first_version(action, Do::decide)) recognise(program);
}

void PartialSums::keep(Program& program, Token token) {
  ProgramParts const& parts = program.parts();
  std::size_t const lane = std::size_t(parts.lane);
  for (Posting const& posting : postings_of(parts.schedule.lanes[lane], token)) {
    if (posting.transfer != Transfer::collective || !posting.bucket.valid()) continue;
    // Reduced by parts, none of which is the whole; or from a leaf that isn't kept.
    if (posting.micro.valid() && parts.schedule.micros_per_update() > 1) continue;
    if (program.store().config().shards.cut_gradients()) continue;
    program.stream().synchronize();
    for (Segment s : parts.schedule.buckets[lane][std::size_t(posting.bucket.v)].segments) {
      View const sum = program.store().gradients().own(s);
      kept_[s].assign(sum.data, sum.data + sum.bytes());
    }
  }
}

void PartialSums::recognise(Program& program) {
  if (out_.counts.replicas == 1) return kept_.clear();
  program.stream().synchronize();
  ModelSpec const& spec = program.store().spec();
  for (auto const& [segment, bytes] : kept_) {
    if (spec[segment.unit].slots > 1) continue;  // its slots have been added meanwhile
    View const sum = program.store().gradients().own(segment);
    Range const where = program.store().own_range(segment.unit);
    View const before = view_at(const_cast<std::byte*>(bytes.data()), nullptr, sum.dtype, sum.dims());
    for (ParamId id : spec[segment.unit].params) {
      View const part = own_part(sum, where, spec[id]).values;
      bool const same = part.elements() > 0 && same_bytes(part, own_part(before, where, spec[id]).values.data);
      out_.findings[std::size_t(catalogue_.find(TensorKind::weight_gradient, id.v))].partial = same ? 1 : 0;
    }
  }
  kept_.clear();
}

SampleLedger::SampleLedger(Sampler const& sampler, int updates) : updates_(updates), ids_(std::size_t(sampler.global_batch())) {
  ids_.resize(sampler.samples_of(0, ids_).size());
  std::sort(ids_.begin(), ids_.end());
  times_.resize(ids_.size() + 1);
}

void SampleLedger::read(Program&, HostBatch const& batch) {
  if (batch.update >= updates_) return;
  for (std::int64_t row = 0; row < batch.rows; ++row) {
    std::int64_t const id = batch.samples[std::size_t(2 * row + 1)];
    auto const at = std::lower_bound(ids_.begin(), ids_.end(), id);
    bool const known = at != ids_.end() && *at == id;
    times_[known ? std::size_t(at - ids_.begin()) : ids_.size()] += 1;
  }
}

Candidate::Candidate(CandidateParts parts)
    : parts_(std::move(parts)),
      world_(make_recording(parts_.world, traffic_)),
      comparison_(empty_comparison(parts_)),
      compare_(parts_.envelope, parts_.dtype, comparison_),
      capture_(parts_.catalogue, parts_.job.model_of(parts_.world.rank() % parts_.job.mesh.tensor),
               own_micros(parts_.job, parts_.world.rank()), compare_),
      partial_(parts_.catalogue, comparison_),
      own_(parts_.catalogue, parts_.optimizer, comparison_),
      samples_(parts_.job.sampler(), parts_.job.updates_per_batch()),
      beat_(parts_.beat) {
  // Faults come first: what they do is what the others see.
  std::vector<Hook*> hooks;
  for (auto const& fault : parts_.faults) hooks.push_back(fault.get());
  for (Hook* hook : std::initializer_list<Hook*>{&capture_, &partial_, &own_, &samples_, &beat_}) hooks.push_back(hook);
  rig_ = std::make_unique<Rig>(parts_.job, RigParts{.ops = parts_.ops, .world = *world_, .observer = &capture_, .hooks = std::move(hooks)});
  Sampler const sampler = parts_.job.sampler();
  std::vector<std::int64_t> ids(std::size_t(parts_.job.global_batch));
  // An asynchronous lane is at work on as many batches as it is deep, and begins with a start-up.
  std::int64_t const depth = parts_.job.schedule.synchronous() ? 0 : std::int64_t(parts_.job.schedule.lanes.size());
  std::int64_t full = 0;  // batches since the last short one
  for (std::int64_t step = 0; step < parts_.steps; ++step) {
    rig_->arena().restart_hash();
    rig_->program().advance(parts_.job.updates_per_batch());
    // The last batch of an epoch may be short: it rightly takes other memory.
    full = sampler.samples_of(step, ids).size() == ids.size() ? full + 1 : 0;
    if (full > depth) sequences_.push_back(rig_->arena().sequence_hash());
  }
  rig_->program().drain();
}

}  // namespace shardmark
