#pragma once
// How unequal the ranks of the centralised way are: time, memory and traffic of each, beside what is predicted, and beside replicas that
// all-reduce (ddp).

#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/measure.hpp"
#include "app/predict.hpp"

namespace shardmark {

/// Unit: bytes per global batch, by the algorithm of least volume (comm/decorators/recording.hpp).
struct Volume {
  std::int64_t sent = 0, received = 0;
};
/// Gradients, weights and samples; without the few bytes of the decision, and without running statistics.
Volume counted_volume(DryRun const& plan);
/// The closed form, with n ranks: rank 0 takes (n-1) times the gradients, gives (n-1) times the samples' pieces, and weights once into
/// their chain; each other rank gives its gradients and takes weights and its samples.
Volume formula_volume(Job const& job, int rank);
/// The part of one purpose; absent for others than these three.
std::optional<Volume> formula_volume(Job const& job, int rank, std::string_view purpose);

struct RankShare {
  double busy_seconds = 0, waiting_seconds = 0, data_seconds = 0;  // per global batch; busy: the rest of the step
  double predicted_busy_seconds = 0;                               // by the probe
  std::array<std::int64_t, books> peak{};                          // measured, by category
  std::int64_t peak_total = 0, planned_total = 0;
  Volume counted;
};

struct RankShares {
  std::vector<RankShare> ranks;
  DryRun all_reduced;  // one of as many replicas that all-reduce
};

/// Collective. @param plan  this rank's; @param peak  this rank's, measured
RankShares share_out(Communicator& world, Measurement const& measured, DryRun const& plan, Probe const& probe,
                     std::array<std::int64_t, books> const& peak, std::int64_t peak_total, Job const& all_reducing);

/// A row a rank, and one of ddp.
std::string share_table(RankShares const& shares, Job const& job);

}  // namespace shardmark
