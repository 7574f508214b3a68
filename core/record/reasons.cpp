#include "record/reasons.hpp"

#include <array>

#include "base/error.hpp"

namespace shardmark::record {
namespace {

constexpr std::array<std::string_view, reasons> codes{"launch_set_incomplete",
                                                      "rounds_incomplete",
                                                      "not_completed",
                                                      "unverified",
                                                      "verification_failed",
                                                      "in_situ_does_not_fit",
                                                      "differs_from_timed",
                                                      "no_warmup",
                                                      "traced",
                                                      "allocations_after_warmup",
                                                      "nonfinite_steps",
                                                      "injected_fault",
                                                      "emulated_link",
                                                      "emulated_nodes",
                                                      "ranks_share_cores",
                                                      "cgroup_quota",
                                                      "stolen_time",
                                                      "small_shared_memory",
                                                      "inhomogeneous_nodes",
                                                      "unknown_source",
                                                      "changed_source",
                                                      "unoptimised_build",
                                                      "different_binaries"};

}  // namespace

std::string_view name(Verdict verdict) {
  switch (verdict) {
    case Verdict::verified:
      return "VERIFIED";
    case Verdict::failed:
      return "FAILED";
    case Verdict::unverified:
      return "UNVERIFIED";
  }
  return "?";
}

std::string_view name(State state) {
  switch (state) {
    case State::running:
      return "running";
    case State::completed:
      return "completed";
    case State::failed:
      return "failed";
    case State::timeout:
      return "timeout";
    case State::cancelled:
      return "cancelled";
    case State::oom:
      return "oom";
  }
  return "?";
}

std::string_view code(Reason reason) {
  expect(std::size_t(reason) < reasons, "a reason of the list");
  return codes[std::size_t(reason)];
}

}  // namespace shardmark::record
