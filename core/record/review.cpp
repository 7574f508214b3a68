// What speaks against calling a result official.

#include <fmt/format.h>

#include "record/provenance.hpp"

namespace shardmark::record {
namespace {

/// Launches that an official set has at least.
constexpr int official_launches = 5;
/// Share of a machine's time that others may take before a result is in doubt. Unit: per cent.
constexpr double tolerated_steal = 1;

class Review {
 public:
  void when(bool against, Reason reason, std::string detail) {
    if (against) found_.push_back({reason, std::move(detail)});
  }
  std::vector<Unofficial> found() { return std::move(found_); }

 private:
  std::vector<Unofficial> found_;
};

void review_run(Review& review, Record const& record) {
  Run const& run = record.run;
  int const done = run.launch_index.value_or(1), planned = std::max(run.launches_planned.value_or(1), official_launches);
  review.when(done < planned, Reason::launch_set_incomplete, fmt::format("{} of {} launches", done, planned));
  review.when(run.state != State::completed, Reason::not_completed, fmt::format("state {}", name(run.state)));
  review.when(record.input.injected_fault.has_value(), Reason::injected_fault, record.input.injected_fault.value_or(""));
  review.when(record.input.emulated_link.has_value(), Reason::emulated_link, record.input.emulated_link.value_or(""));
}

void review_proof(Review& review, Record const& record) {
  auto const& differences = record.verification.differs_from_timed;
  review.when(record.verdict == Verdict::unverified, Reason::unverified, "the verdict is UNVERIFIED");
  review.when(record.verdict == Verdict::failed, Reason::verification_failed, "the verdict is FAILED");
  review.when(!differences.empty(), Reason::differs_from_timed, fmt::format("{}", fmt::join(differences, ", ")));
}

void review_measurement(Review& review, Record const& record) {
  review.when(record.method.warmup_steps == 0, Reason::no_warmup, "no step before the timed ones");
  review.when(record.method.trace, Reason::traced, "spans were recorded in the timed steps");
  if (!record.result) return;
  auto const& allocations = record.result->memory_bytes.allocations_after_warmup;
  std::int64_t const nonfinite = record.result->loss.nonfinite_steps;
  review.when(allocations && *allocations > 0, Reason::allocations_after_warmup, fmt::format("{} allocations", allocations.value_or(0)));
  review.when(nonfinite > 0, Reason::nonfinite_steps, fmt::format("{} steps", nonfinite));
}

void review_system(Review& review, Record const& record) {
  System const& system = record.system;
  bool const share_kernel = system.distinct_boot_ids && *system.distinct_boot_ids < system.nodes;
  review.when(share_kernel, Reason::emulated_nodes,
              fmt::format("{} nodes, {} kernels", system.nodes, system.distinct_boot_ids.value_or(system.nodes)));
  review.when(system.ranks_per_core > 1, Reason::ranks_share_cores, fmt::format("{} on one core", system.ranks_per_core));
  review.when(system.cgroup_cpu_quota.has_value(), Reason::cgroup_quota, fmt::format("{} processors", system.cgroup_cpu_quota.value_or(0)));
  review.when(system.homogeneous && !*system.homogeneous, Reason::inhomogeneous_nodes, "the nodes differ");
  double steal = 0;
  for (Rank const& rank : record.ranks) steal = std::max(steal, rank.steal_pct.value_or(0));
  review.when(steal > tolerated_steal, Reason::stolen_time, fmt::format("{:.1f} % of the time went to others", steal));
}

void review_build(Review& review, Build const& build) {
  review.when(build.source != "git", Reason::unknown_source, "not built from a commit");
  review.when(build.dirty.value_or(false), Reason::changed_source, "files differ from the commit");
  review.when(build.type != "release", Reason::unoptimised_build, fmt::format("build type {}", build.type));
  review.when(build.same_binary_on_all_nodes && !*build.same_binary_on_all_nodes, Reason::different_binaries,
              "the nodes ran different programs");
}

}  // namespace

std::vector<Unofficial> reasons_against(Record const& record) {
  Review review;
  review_run(review, record);
  review_proof(review, record);
  review_measurement(review, record);
  review_system(review, record);
  review_build(review, record.build);
  return review.found();
}

}  // namespace shardmark::record
