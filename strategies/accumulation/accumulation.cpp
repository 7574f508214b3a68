// Gradient accumulation: one process adds the gradients of K micro-batches before it updates. The same sum is made by K replicas of data
// parallelism with one micro-batch each; in one tree it has the same bits.
//
//   one process, K=3:   rank 0 | F0 B0 F1 B1 F2 B2    U          K = 3 replicas:   rank 0 | F0 B0 R U
//                       sum    |   g0 + g1    + g2                                 rank 1 | F0 B0 R U     R = (g0 + g1) + g2
//                                                                                  rank 2 | F0 B0 R U

#include "strategies/accumulation/accumulation.hpp"

#include <fmt/format.h>

#include "strategies/accumulation/equivalence.hpp"

namespace shardmark {
namespace {

class Accumulation final : public Strategy {
 public:
  std::string name() const override { return "accumulation"; }

  std::optional<Refusal> refuse(Options const& options, int ranks) const override {
    if (ranks == 1) return {};
    if (options.command == Command::bench)
      return Refusal{fmt::format("accumulation trains on one rank, not on {}", ranks), "K micro-batches of one process are what is timed",
                     "start it without mpirun; ddp --accumulate K has replicas"};
    if (options.micros > 1)
      return Refusal{fmt::format("{} micro-batches on {} ranks", options.micros, ranks),
                     fmt::format("{} replicas are compared with {} micro-batches of one process", ranks, ranks),
                     "leave --accumulate out; ddp verify proves replicas of several micro-batches"};
    if (options.batch_norm == BatchNormPolicy::sync)
      return Refusal{fmt::format("--batch-norm sync on {} ranks", ranks),
                     "statistics over all replicas are another function than those of each micro-batch",
                     "leave it out; a row of the table says what it changes"};
    if (global_batch(options, ranks) < ranks)
      return Refusal{fmt::format("{} samples for {} micro-batches of one process", global_batch(options, ranks), ranks),
                     "some would be empty in every update", fmt::format("use --batch {} or more, or fewer ranks", ranks)};
    return {};
  }

  /// On one rank what is accumulated; on several the replicas that it equals.
  MeshShape mesh(Options const&, int ranks) const override { return {.data = ranks}; }
  Schedule plan(Options const& options, int) const override { return plan_sequential("accumulation", options.micros); }
  Axes reduced_over(int ranks) const override { return ranks > 1 ? axes(Axis::data) : 0; }

  Prediction predict(Options const& options, std::vector<BlockShape> const& blocks, int ranks) const override {
    return ranks > 1 ? predict_all_reduces(options, blocks, ranks) : Prediction{};
  }

  Supplement supplement(RankContext const& context) const override { return compare_both_ways(context); }
};

}  // namespace

std::unique_ptr<Strategy> make_accumulation() { return std::make_unique<Accumulation>(); }

}  // namespace shardmark
