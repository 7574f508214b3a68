#include "app/recompute_budget.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

#include "app/describe.hpp"
#include "app/nearest.hpp"
#include "app/replay_batch.hpp"
#include "run/block_profile.hpp"
#include "schedule/check.hpp"
#include "schedule/recompute.hpp"

namespace shardmark {
namespace {

constexpr std::string_view prefix = "budget:", least = "least";
constexpr double bytes_per_mib = 1024 * 1024;
constexpr int most_corrections = 8;

std::int64_t activations_of(Job const& job, int rank) { return dry_run(job, rank).peak[std::size_t(Book::activations)]; }

void require_chains(Options const& options, Schedule const& refined) {
  auto refuse = [&](std::string const& with, std::string const& reason) {
    fail_input({fmt::format("--recompute {} with {}", printable(options.recompute), with), reason, "use another rule, such as all"});
  };
  if (options.split_backward != SplitBackward::off) refuse("--split-backward", "what weight halves wait with isn't planned");
  auto const& lanes = refined.lane_of_chunk;
  for (std::size_t b = 1; b < lanes.size(); ++b)
    if (lanes[b] != lanes[b - 1] &&
        std::find(lanes.begin(), lanes.begin() + std::ptrdiff_t(b) - 1, lanes[b]) != lanes.begin() + std::ptrdiff_t(b) - 1)
      refuse("several chunks on a rank", "a plan is made for one chain of blocks");
}

/// Bytes for one rank; those of a job in another type, which is there for comparison, by its width.
double budget_bytes(MemoryBudget const& budget, Options const& options, Job const& job, std::int64_t most_bytes) {
  if (budget.unit == MemoryBudget::Unit::percent) return budget.amount / 100 * double(most_bytes);
  return budget.amount * bytes_per_mib * double(width(job.model->dtype)) / double(width(options.dtype));
}

/// Within `limit` bytes of a stage: micro-batches share it and keep what they need until their backwards, or each keeps its input, and the
/// rest is for the one that runs again. Where neither fits, the one with the smaller peak.
ChainPlan chosen(StagePlans const& stage, std::int64_t limit) {
  std::int64_t const share = limit / stage.live - stage.input_bytes, one = limit - stage.live * stage.input_bytes;
  double const forward = stage.plans.forward_seconds();
  auto const sharing = stage.plans.within(share), alone = stage.plans.within(one);
  if (sharing && (stage.live == 1 || sharing->again_seconds <= alone->again_seconds + forward)) return *sharing;
  if (alone) return stage.live == 1 ? *alone : from_input(*alone, forward);
  ChainPlan const smallest = *stage.plans.within(stage.plans.front().front().peak_bytes);
  return stage.live == 1 ? smallest : from_input(smallest, forward);
}

/// A schedule and what its ranks' activations come to.
struct Tried {
  Schedule recomputing;
  std::vector<std::int64_t> peaks;
};

Tried attempt(Job job, std::vector<StagePlans> const& stages, std::vector<std::int64_t> const& limits, Schedule const& refined,
              Lowering const& lowering) {
  std::vector<ChainPlan> plans;
  for (std::size_t s = 0; s < stages.size(); ++s) plans.push_back(chosen(stages[s], limits[s]));
  Tried out{recompute(refined, plans), {}};
  job.schedule = lowering(out.recomputing);
  for (StagePlans const& stage : stages) out.peaks.push_back(activations_of(job, stage.rank));
  return out;
}

}  // namespace

std::optional<MemoryBudget> memory_budget(std::string const& rule) {
  if (!rule.starts_with(prefix)) return {};
  std::string_view text = std::string_view(rule).substr(prefix.size());
  if (text == least) return MemoryBudget{};
  MemoryBudget out{MemoryBudget::Unit::mib, 0};
  if (text.ends_with('%')) {
    out.unit = MemoryBudget::Unit::percent;
    text.remove_suffix(1);
  }
  auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), out.amount);
  bool const number = error == std::errc() && end == text.data() + text.size() && std::isfinite(out.amount) && out.amount > 0;
  require_input(number, {fmt::format("--recompute {}", printable(rule)), "MiB, a percentage or least is expected",
                         "for example budget:64, budget:50% or budget:least"});
  return out;
}

std::vector<StagePlans> stage_plans(Options const& options, Job const& job, Schedule const& refined, Lowering const& lowering) {
  require_chains(options, refined);
  Job keeps_stashes = job;
  keeps_stashes.schedule = lowering(refined);
  Proof const proof = check(keeps_stashes.schedule, job.model->shapes());
  auto chain = profile_blocks(job);
  if (options.forward_seconds)
    for (std::size_t b = 0; b < chain.size(); ++b) chain[b].forward_seconds = options.forward_seconds->at(b);
  auto const& lanes = refined.lane_of_chunk;
  std::vector<StagePlans> out;
  for (int lane = 0; lane < int(refined.lanes.size()); ++lane) {
    auto const first = std::ranges::find(lanes, lane) - lanes.begin(), blocks = std::ranges::count(lanes, lane);
    int const rank = lane * job.mesh.data * job.mesh.tensor;
    std::int64_t const input = first == 0 ? 0 : std::int64_t(boundary_bytes(job, ChunkId{std::int32_t(first)}));
    int const live = std::max(1, (proof.lanes[std::size_t(lane)].peak_stashes + int(blocks) - 1) / int(blocks));
    ChainPlans plans({chain.begin() + first, chain.begin() + first + blocks});
    out.push_back({rank, live, input, activations_of(keeps_stashes, rank), std::move(plans)});
  }
  return out;
}

Schedule recompute_within(Options const& options, Job const& job, Schedule const& refined, Lowering const& lowering) {
  MemoryBudget const budget = memory_budget(options.recompute).value();
  auto const stages = stage_plans(options, job, refined, lowering);
  std::vector<std::int64_t> const nothing(stages.size(), 0);
  if (budget.unit == MemoryBudget::Unit::least) return attempt(job, stages, nothing, refined, lowering).recomputing;
  std::int64_t most = 0;
  for (StagePlans const& stage : stages) most = std::max(most, stage.most_bytes);
  auto const limit = std::int64_t(budget_bytes(budget, options, job, most));
  std::vector<std::int64_t> limits(stages.size(), limit);
  // What waits at a stage's ends isn't in its plans: a dry run says how much it is.
  for (int correction = 0; correction < most_corrections; ++correction) {
    Tried tried = attempt(job, stages, limits, refined, lowering);
    if (*std::ranges::max_element(tried.peaks) <= limit) return tried.recomputing;
    for (std::size_t s = 0; s < stages.size(); ++s) limits[s] -= std::max<std::int64_t>(0, tried.peaks[s] - limit);
  }
  Tried const smallest = attempt(job, stages, nothing, refined, lowering);
  auto const worst = std::ranges::max_element(smallest.peaks);
  if (job.model->dtype != options.dtype || *worst <= limit) return smallest.recomputing;
  fail_input({fmt::format("--recompute {}", printable(options.recompute)),
              fmt::format("the activations of rank {} take at least {:.2f} MiB", stages[std::size_t(worst - smallest.peaks.begin())].rank,
                          std::ceil(to_mib(*worst) * 100) / 100),
              "give as much, or budget:least"});
}

}  // namespace shardmark
