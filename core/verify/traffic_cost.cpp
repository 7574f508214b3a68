#include "verify/traffic_cost.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace shardmark {
namespace {

constexpr std::string_view decision = "decision";  // the norm and the flags of an update, no layer's

/// Samples of all updates that this rank's replica has made.
double samples_seen(Candidate& candidate) {
  Rig& rig = candidate.rig();
  Job const& job = rig.job();
  Sampler const sampler = job.sampler();
  std::vector<std::int64_t> ids(std::size_t(job.global_batch));
  double out = 0;
  for (std::int64_t step = 0; step < candidate.steps(); ++step) {
    std::int64_t const batch = std::int64_t(sampler.samples_of(step, ids).size());
    out += double(piece_of(batch, job.replicas, rig.mesh().coordinate(Axis::data)).size());
  }
  return out;
}

}  // namespace

void count_traffic(Candidate& candidate, std::vector<TrafficForm> const& forms, std::vector<Count>& out) {
  Axes const tensor = axes(Axis::tensor);
  if (candidate.rig().mesh().extent(Axis::tensor) == 1) return;
  double const micros = double(candidate.steps()) * candidate.rig().job().micros, samples = samples_seen(candidate);
  std::int64_t unexplained = 0;
  for (auto const& [key, count] : candidate.traffic().collectives()) {
    auto const explains = [&, &seen = key](TrafficForm const& form) { return form.what == seen.what && form.purpose == seen.purpose; };
    if (key.axes == tensor && key.purpose != decision && std::none_of(forms.begin(), forms.end(), explains)) unexplained += count.calls;
  }
  out.push_back({"exchanges of layers without a formula", double(unexplained), 0});
  for (TrafficForm const& form : forms) {
    Traffic::Count counted;
    for (auto const& [key, count] : candidate.traffic().collectives())
      if (key.axes == form.axes && key.what == form.what && key.purpose == form.purpose) counted = count;
    std::string const what = fmt::format("{} for {}", name(form.what), form.purpose);
    double const calls = form.calls * micros;
    out.push_back({what, double(counted.calls), calls});
    out.push_back({fmt::format("bytes of {}", what), double(counted.bytes), form.array_bytes(micros, samples)});
    // Slices are cut between elements.
    out.push_back({fmt::format("bytes sent by {}", what), double(counted.sent_bytes), form.sent_bytes(micros, samples),
                   calls * form.members * double(form.element_bytes)});
  }
}

}  // namespace shardmark
