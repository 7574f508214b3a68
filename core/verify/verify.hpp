#pragma once
// The proof that a job computes what a single process computes (validation, "What verify does, in order").
//
//   schedule checker -> envelope (fp64 reference: values, magnitudes, eight perturbed runs) -> fp64 gate -> dtype asked for
//                    -> bitwise against the serial twin, `steps` steps -> counts against closed forms -> verdict

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "run/job.hpp"
#include "schedule/traffic_forms.hpp"
#include "verify/verification.hpp"

namespace shardmark {

/// full: gate, bitwise part, activations. in_situ: step 1 of exactly what is timed, at full size: losses, gradients, updated weights.
enum class Scope : std::uint8_t { full, in_situ };

struct VerifyRequest {
  std::string strategy;
  /// The candidate's job in a type; model, data, batch, schedule and mesh are the same in each. Synchronous.
  std::function<Job(DType)> make_job;
  DType dtype = DType::f32;
  Scope scope = Scope::full;
  /// What layers must exchange, in `dtype`: nothing else may cross the tensor axis. Absent: it isn't counted.
  std::optional<std::vector<TrafficForm>> traffic = {};
  std::int64_t steps = 20;  // of the bitwise part; 0: none (a candidate that reduces in no fixed order)
  std::function<std::unique_ptr<Backend>(DType)> candidate_backend;
  std::function<std::unique_ptr<Backend>()> reference_backend;  // fp64; naive for the gate
  /// Hooks of one run of the candidate: injected faults. Called once for each run; may be empty.
  std::function<std::vector<std::unique_ptr<Hook>>()> candidate_hooks;
  /// Called often while this rank works, so that a watchdog knows that it lives; may be empty.
  std::function<void()> beat;
};

/// Collective over `world`; the same result on every rank. @throws BadSchedule, RankFailure
Verification verify(VerifyRequest const& request, Communicator& world);

}  // namespace shardmark
