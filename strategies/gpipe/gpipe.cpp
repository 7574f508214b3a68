// GPipe: synchronous pipeline parallelism (Huang et al., NeurIPS 2019, figure 2c).
//
//   P=4, M=4, backward as long as forward:
//   stage 0 | F0 F1 F2 F3  .  .  .  .  .  . B3 B2 B1 B0  U
//   stage 1 |  . F0 F1 F2 F3  .  .  .  . B3 B2 B1 B0  .  U
//   stage 2 |  .  . F0 F1 F2 F3  .  . B3 B2 B1 B0  .  .  U
//   stage 3 |  .  .  . F0 F1 F2 F3 B3 B2 B1 B0  .  .  .  U

#include "strategies/gpipe/gpipe.hpp"

namespace shardmark {
namespace {

constexpr int micros_of_the_paper = 4;

class Gpipe final : public Strategy {
 public:
  std::string name() const override { return "gpipe"; }
  std::vector<std::string> offers() const override {
    return {"balance", "split-points", "recompute", "schedule", "compare", "svg", "backward-order"};
  }
  int usual_micros() const override { return micros_of_the_paper; }
  std::string usual_recompute() const override { return "all"; }  // as in the paper

  std::optional<Refusal> refuse(Options const&, int) const override { return {}; }

  MeshShape mesh(Options const&, int ranks) const override { return {.pipeline = ranks}; }

  /// All forwards, then all backwards.
  Schedule plan(Options const& options, int ranks) const override { return plan_gpipe(shape(options, ranks), options.backward_order); }

  /// The bubble is (p-1)/(m+p-1); every forward is kept until its backward.
  Prediction predict(Options const& options, std::vector<BlockShape> const&, int ranks) const override {
    return predict_pipeline(options, Pipeline::gpipe, shape(options, ranks));
  }

 private:
  static PipelineShape shape(Options const& options, int ranks) { return {.stages = ranks, .micros = options.micros}; }
};

}  // namespace

std::unique_ptr<Strategy> make_gpipe() { return std::make_unique<Gpipe>(); }

}  // namespace shardmark
