#pragma once
// Verdicts, states, and the reasons why a result isn't official. Their codes are read by scripts: they never change.

#include <cstdint>
#include <string>
#include <string_view>

namespace shardmark::record {

enum class Verdict : std::uint8_t { verified, failed, unverified };
/// VERIFIED, FAILED, UNVERIFIED
std::string_view name(Verdict verdict);

enum class State : std::uint8_t { running, completed, failed, timeout, cancelled, oom };
std::string_view name(State state);

/// Why a result isn't official. Append only.
enum class Reason : std::uint8_t {
  launch_set_incomplete,  // fewer launches than planned, or fewer than five
  rounds_incomplete,      // a comparison of fewer than six rounds
  not_completed,          // the state is another
  unverified,             // --no-verify, or a check lacked power
  verification_failed,
  in_situ_does_not_fit,  // the timed configuration itself could not be proven
  differs_from_timed,    // what was proven isn't what was timed
  no_warmup,
  traced,  // spans were recorded in timed steps
  allocations_after_warmup,
  nonfinite_steps,
  injected_fault,
  emulated_link,
  emulated_nodes,  // nodes that share a kernel
  ranks_share_cores,
  cgroup_quota,
  stolen_time,
  small_shared_memory,  // the transport fell back from shared memory
  inhomogeneous_nodes,
  unknown_source,  // not built from a commit
  changed_source,  // built from a commit and changes to it
  unoptimised_build,
  different_binaries  // nodes ran different programs
};
inline constexpr std::size_t reasons = std::size_t(Reason::different_binaries) + 1;
/// The stable code: the enumerator's name.
std::string_view code(Reason reason);

struct Unofficial {
  Reason reason{};
  std::string detail;  // "3 of 5 launches"
};

}  // namespace shardmark::record
