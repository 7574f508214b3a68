#include "verify/root_cost.hpp"

#include <cmath>

namespace shardmark {

double bytes_of_samples(Job const& job) {
  SampleShape const sample = job.data->shape();
  auto const bytes = [](DType type, std::vector<std::int64_t> const& shape) {
    double out = double(width(type));
    for (std::int64_t extent : shape) out *= double(extent);
    return out;
  };
  double const rows = std::ceil(std::ceil(double(job.global_batch) / job.replicas) / job.micros);
  double const micro = 40 + rows * (16 + bytes(sample.input_type, sample.input) + bytes(sample.target_type, sample.target));
  return job.micros * 64 * std::ceil(micro / 64);
}

/// Samples once a batch; weights once an update, unit by unit; optimizer state nowhere else.
void count_root(Candidate& candidate, std::vector<Count>& out) {
  Rig& rig = candidate.rig();
  Job const& job = rig.job();
  if (!job.scatters()) return;
  Traffic::Count weights, samples;
  for (auto const& [key, count] : candidate.traffic().collectives()) {
    if (key.purpose == "weights") weights.calls += count.calls, weights.bytes += count.bytes;
    if (key.purpose == "samples") samples.calls += count.calls, samples.bytes += count.bytes;
  }
  bool const root = rig.mesh().coordinate(Axis::data) == 0;
  double const steps = double(candidate.steps()), elements = double(job.model->spec.elements());
  double const units = double(job.model->spec.units.size()), states = double(job.optimizer.states());
  out.push_back({"scatters of samples per update", double(samples.calls) / steps, 1});
  out.push_back({"bytes of samples per update", double(samples.bytes) / steps, bytes_of_samples(job) * (root ? double(job.replicas) : 1)});
  out.push_back({"broadcasts of weights per update", double(weights.calls) / steps, units});
  out.push_back({"bytes of weights per update", double(weights.bytes) / steps, elements * double(width(job.model->dtype))});
  constexpr double alignment = 64;  // of the arena, which books it for nothing too
  double const state_bytes = elements * double(width(accumulator(job.model->dtype))) * states;
  out.push_back(
      {"bytes of optimizer state", double(rig.ledger().peak(Book::optimizer)), root ? state_bytes : 0, alignment * units * states});
}

}  // namespace shardmark
