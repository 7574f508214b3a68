#include "verify/cost.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "verify/root_cost.hpp"
#include "verify/sharing_cost.hpp"
#include "verify/traffic_cost.hpp"

namespace shardmark {
namespace {

constexpr std::int64_t warm_steps = 2;
constexpr double memory_tolerance = 0.02;

/// Gradient buckets that are reduced in one update, and their bytes.
void reductions(Candidate& candidate, std::vector<Count>& out) {
  Program& program = candidate.rig().program();
  Schedule const& schedule = program.parts().schedule;
  if (schedule.sharing != Sharing::replicated && schedule.sharing != Sharing::root) return;  // count_sharing()
  double buckets = 0, elements = 0;
  if (schedule.reduced_over != 0)
    for (Bucket const& bucket : schedule.buckets[std::size_t(program.parts().lane)]) {
      buckets += 1;
      elements += double(bucket.elements);
    }
  double const times = schedule.sum.inside == Inside::replicas ? schedule.micros_per_update() : 1;
  double const updates = double(program.history().size());
  Traffic::Count posted;
  for (auto const& [key, count] : candidate.traffic().collectives())
    if (key.purpose == "gradients") {
      posted.calls += count.calls;
      posted.bytes += count.bytes;
    }
  double const bytes = double(width(accumulator(program.parts().model.dtype)));
  out.push_back({"reductions posted per update", double(program.reductions_posted()) / updates, buckets * times});
  out.push_back({"reductions on the wire per update", double(posted.calls) / updates, buckets * times});
  // Rank 0 of the centralised way takes everybody's.
  bool const takes_all = schedule.sharing == Sharing::root && program.parts().mesh.coordinate(Axis::data) == 0;
  double const arrays = takes_all ? double(program.parts().mesh.extent(Axis::data)) : 1;
  out.push_back({"bytes reduced per update", double(posted.bytes) / updates, elements * bytes * times * arrays});
}

void memory(Candidate& candidate, Proof const& proof, int rank, std::vector<Count>& out) {
  Program& program = candidate.rig().program();
  LaneFacts const& facts = proof.lanes[std::size_t(program.parts().lane)];
  // A run of a few updates may never have filled a pipeline without a flush: it holds at most as many.
  Schedule const& schedule = program.parts().schedule;
  bool const filled = std::int64_t(program.history().size()) >= std::int64_t(proof.windows_checked) * schedule.versions_per_window;
  auto const held = [&](char const* what, int counted, int most) {
    out.push_back({what, double(counted), double(filled || schedule.synchronous() ? most : std::min(counted, most))});
  };
  held("stashes kept at once", program.peak_stashes(), facts.peak_held);
  held("weight versions at once", program.store().peak_resident(), facts.peak_versions);
  held("updates with gradients at once", program.peak_gradients(), facts.peak_gradients);
  double const planned = double(dry_run(candidate.rig().job(), rank).peak_total);
  // Short batches keep a pipeline that isn't drained from its peak for up to an epoch.
  Job const& job = candidate.rig().job();
  if (job.schedule.synchronous() || candidate.steps() > 2 * batches_to_warm(job))
    out.push_back({"peak bytes", double(candidate.rig().ledger().peak_total()), planned, memory_tolerance * planned});
  // After warm-up every step takes the same memory in the same order, so addresses repeat.
  auto const& hashes = candidate.sequences();
  if (std::int64_t(hashes.size()) > warm_steps + 1) {
    auto const others = std::count_if(hashes.begin() + warm_steps, hashes.end(), [&](std::uint64_t h) { return h != hashes.back(); });
    out.push_back({"steps that take other memory", double(others), 0});
  }
  out.push_back({"requests outstanding", double(candidate.outstanding()), 0});
}

/// One broadcast of the running statistics for each forward; with synchronised batch normalisation, two exchanges of statistics for each
/// block that merges and micro-batch.
void batch_norm(Candidate& candidate, std::vector<Count>& out) {
  Program& program = candidate.rig().program();
  ProgramParts const& parts = program.parts();
  Tensor const& buffers = program.store().buffers();
  if (parts.model.spec.buffers.empty()) return;
  Traffic::Count broadcasts, exchanges;
  for (auto const& [key, count] : candidate.traffic().collectives()) {
    if (key.purpose == "buffers") broadcasts.calls += count.calls, broadcasts.bytes += count.bytes;
    if (key.purpose == "batch statistics") exchanges.calls += count.calls;
  }
  bool const shares = buffers && parts.mesh.extent(Axis::data) > 1;  // a stage may hold none
  double const forwards = shares ? double(parts.schedule.micros_per_update()) : 0;
  double merging = 0;
  for (std::size_t b = 0; b < parts.model.blocks.size(); ++b)
    if (parts.schedule.lane_of_chunk[b] == parts.lane && parts.model.blocks[b].merged != nullptr) merging += 1;
  bool const sync = parts.batch_norm == BatchNormPolicy::sync;
  double const steps = double(candidate.steps());
  out.push_back({"broadcasts of buffers per update", double(broadcasts.calls) / steps, forwards});
  out.push_back({"bytes of buffers per update", double(broadcasts.bytes) / steps, shares ? forwards * double(buffers.view.bytes()) : 0});
  out.push_back({"exchanges of batch statistics per update", double(exchanges.calls) / steps, sync ? 2 * merging * forwards : 0});
}

/// What crosses the boundaries of this lane in all batches: activations upwards, their gradients downwards.
void messages(Candidate& candidate, std::vector<Count>& out) {
  Rig& rig = candidate.rig();
  Job const& job = rig.job();
  auto const& lanes = job.schedule.lane_of_chunk;
  if (job.schedule.lanes.size() == 1) return;
  int const mine = rig.mesh().coordinate(Axis::pipeline);
  double elements = 0;  // of one sample
  for (std::size_t edge = 1; edge < lanes.size(); ++edge) {
    if (lanes[edge - 1] == lanes[edge]) continue;
    double boundary = 1;
    for (std::int64_t d : job.model->blocks[edge - 1].boundary) boundary *= double(d);
    if (lanes[edge - 1] == mine || lanes[edge] == mine) elements += boundary;
  }
  Sampler const sampler = job.sampler();
  std::vector<std::int64_t> ids(std::size_t(job.global_batch));
  double samples = 0;
  std::int64_t const updates = std::int64_t(rig.program().history().size()), pieces = job.updates_per_batch();
  for (std::int64_t update = 0; update < updates; ++update) {
    Range const batch{0, std::int64_t(sampler.samples_of(update / pieces, ids).size())};
    Range const replica = piece_of(batch.size(), job.replicas, rig.mesh().coordinate(Axis::data));
    samples += double(piece_of(replica.size(), int(pieces), int(update % pieces)).size());
  }
  double const bytes = double(candidate.traffic().total(Direction::send).bytes);
  out.push_back({"bytes sent over boundaries", bytes, elements * samples * double(width(job.model->dtype))});
}

/// Ranks of one place whose hash is another one than this rank's.
double others(std::uint64_t hash, double place, Assembly& ranks) {
  // Halves are exact in a double.
  std::vector<double> const mine{place, double(hash >> 32), double(hash & 0xffffffffu)};
  std::vector<double> const all = ranks.gather(mine);
  double out = 0;
  for (std::size_t r = 0; r < all.size(); r += 3)
    if (all[r] == place && (all[r + 1] != mine[1] || all[r + 2] != mine[2])) out += 1;
  return out;
}

/// Replicas hold equal weights, bit for bit, at the end; so do tensor-parallel ranks where weights are copies.
void replicas(Candidate& candidate, Assembly& ranks, std::vector<Count>& out) {
  Mesh& mesh = candidate.rig().mesh();
  Program& program = candidate.rig().program();
  double const stage = mesh.coordinate(Axis::pipeline), part = mesh.coordinate(Axis::tensor);
  out.push_back({"replicas with other weights", others(program.weights_hash(), stage * mesh.extent(Axis::tensor) + part, ranks), 0});
  if (mesh.extent(Axis::tensor) > 1) out.push_back({"tensor ranks with other copies", others(program.copies_hash(), stage, ranks), 0});
}

/// Every sample of the update on exactly one replica, once; on each of its tensor-parallel ranks (case 49).
Count samples(Candidate& candidate, Assembly& ranks) {
  Mesh& mesh = candidate.rig().mesh();
  double wrong = 0;
  for (int part = 0; part < mesh.extent(Axis::tensor); ++part) {
    std::vector<double> times = candidate.samples().times();
    if (mesh.coordinate(Axis::pipeline) != 0 || mesh.coordinate(Axis::tensor) != part) std::fill(times.begin(), times.end(), 0.0);
    ranks.sum(times);
    wrong += times.back();  // of other updates
    for (std::size_t i = 0; i + 1 < times.size(); ++i) wrong += times[i] == 1 ? 0 : 1;
  }
  return {"samples not read exactly once", wrong, 0};
}

}  // namespace

std::vector<Check> check_costs(std::string const& part, Candidate& candidate, Proof const& proof,
                               std::optional<std::vector<TrafficForm>> const& traffic, Assembly& ranks) {
  std::vector<Count> mine;
  reductions(candidate, mine);
  count_sharing(candidate, mine);
  memory(candidate, proof, ranks.rank(), mine);
  batch_norm(candidate, mine);
  messages(candidate, mine);
  if (traffic) count_traffic(candidate, *traffic, mine);
  count_root(candidate, mine);
  replicas(candidate, ranks, mine);
  mine.push_back(samples(candidate, ranks));

  std::vector<double> numbers;
  for (Count const& c : mine) numbers.insert(numbers.end(), {c.counted, c.expected, c.tolerance});
  std::vector<double> const all = ranks.gather(numbers);
  std::vector<Check> out;
  for (std::size_t i = 0; i < mine.size(); ++i) {
    Check check{.part = part, .tensor = mine[i].what, .module = "cost", .kind = CheckKind::count};
    check.frobenius = check.ratio = check.power = std::numeric_limits<double>::quiet_NaN();
    check.elements = 1;
    for (int r = 0; r < ranks.ranks(); ++r) {
      double const* const at = &all[std::size_t(r) * numbers.size() + 3 * i];
      double const error = std::abs(at[0] - at[1]);
      if (check.rank >= 0 && error <= check.error) continue;
      check.error = error;
      check.bound = at[2];
      check.rank = r;
      check.note = fmt::format("{:.0f}, expected {:.0f}", at[0], at[1]);
    }
    if (!(check.error <= check.bound)) check.verdict = Verdict::failed;
    out.push_back(std::move(check));
  }
  return out;
}

}  // namespace shardmark
