#pragma once
// R replicas of one micro-batch and one process that accumulates R, trained side by side on the same samples.

#include <optional>

#include "app/build_job.hpp"
#include "app/main.hpp"
#include "strategies/accumulation/leaves.hpp"

namespace shardmark {

struct TwoJobs {
  Job replicas;  // on all ranks
  Job alone;     // on rank 0
};
/// From the same options; `alone` is what `accumulation --accumulate R` runs on one rank.
TwoJobs two_jobs(Options options, Strategy const& strategy, int ranks, std::shared_ptr<Dataset const> const& data);

/// Runs jobs on the world, and on rank 0 alone.
class Workbench {
 public:
  explicit Workbench(RankContext const& context);
  /// The gradient of update 1 of all ranks' job; on rank 0, elsewhere empty. Collective.
  enum class Weights : std::uint8_t { own, of_first_rank };
  ByUnit first_gradient(Job const& job, Weights weights = Weights::own);
  /// The same of a job that rank 0 runs while the others go on.
  ByUnit first_gradient_alone(Job const& job);
  /// Running statistics after update 1, by buffer.
  ByUnit first_buffers(Job const& job);
  ByUnit first_buffers_alone(Job const& job);
  bool leads() const { return context_.world.rank() == 0; }
  RankContext const& context() const { return context_; }
  RigParts parts(Communicator& world, std::vector<Hook*> hooks);

 private:
  template <class Read>
  ByUnit after_first_update(Job const& job, Communicator& world, Weights weights, Read&& read);

  RankContext const& context_;
  std::unique_ptr<Backend> ops_;
  std::unique_ptr<Communicator> self_;
  std::function<void()> beat_;
  std::unique_ptr<Hook> alive_;
};

/// What both ways came to; numbers on rank 0 alone, the same names on all.
struct BothWays {
  struct Compared {
    std::string what;
    std::int64_t differ = 0, of = 0;  // elements, over all updates
    std::string first;                // difference: "h.0.attn at update 3"
  };
  std::vector<Compared> compared;
  ByUnit replicas, alone;          // gradients of update 1
  std::optional<LeafSums> leaves;  // of update 1
  struct Tail {                    // the first update of fewer samples than a batch
    std::int64_t update = 0;       // 1-based
    double share = 0;              // of the loss terms of update 1
    ByUnit gradient;
    std::optional<LeafSums> leaves;
  };
  std::optional<Tail> tail;  // absent: no update of the run was short
};
/// Collective.
BothWays run_both_ways(Workbench& bench, TwoJobs const& jobs, std::int64_t steps);

}  // namespace shardmark
