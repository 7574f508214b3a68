// Activation checkpointing (Chen et al., "Training deep nets with sublinear memory cost", 2016): serial training that keeps the inputs of
// some blocks alone and runs their forwards again, right before their backwards.
//
//   4 blocks, every block but the last recomputed:
//   rank 0 | F0 F1 F2 F3 B3 R2 B2 R1 B1 R0 B0 U

#include "strategies/checkpointing/checkpointing.hpp"

#include <fmt/format.h>

namespace shardmark {
namespace {

class Checkpointing final : public Strategy {
 public:
  std::string name() const override { return "checkpointing"; }
  std::vector<std::string> offers() const override { return {"recompute", "svg"}; }
  std::string usual_recompute() const override { return "all"; }
  bool compares_rules() const override { return true; }

  std::optional<Refusal> refuse(Options const&, int ranks) const override {
    if (ranks != 1)
      return Refusal{fmt::format("checkpointing runs on one rank, not on {}", ranks), "its memory is compared with serial's",
                     "start it without mpirun; pipelines have --recompute too"};
    return {};
  }

  MeshShape mesh(Options const&, int) const override { return {}; }

  /// What serial does; what is recomputed is a pass over it.
  Schedule plan(Options const& options, int) const override { return plan_sequential("checkpointing", options.micros); }

  Prediction predict(Options const&, std::vector<BlockShape> const&, int) const override { return {}; }
};

}  // namespace

std::unique_ptr<Strategy> make_checkpointing() { return std::make_unique<Checkpointing>(); }

}  // namespace shardmark
