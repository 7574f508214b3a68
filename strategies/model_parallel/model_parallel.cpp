// Naive model parallelism: the layers on several ranks, one batch at a time; the baseline that pipelines improve on.
//
//   P=3, M=1:
//   stage 0 | F0  .  .  .  . B0  U
//   stage 1 |  . F0  .  . B0  .  U
//   stage 2 |  .  . F0 B0  .  .  U

#include "strategies/model_parallel/model_parallel.hpp"

namespace shardmark {
namespace {

class ModelParallel final : public Strategy {
 public:
  std::string name() const override { return "model_parallel"; }
  std::vector<std::string> offers() const override { return {"balance", "split-points", "recompute", "schedule", "compare", "svg"}; }

  std::optional<Refusal> refuse(Options const&, int) const override { return {}; }

  MeshShape mesh(Options const&, int ranks) const override { return {.pipeline = ranks}; }

  /// Micro-batches don't overlap: each goes through all stages and back before the next one starts.
  Schedule plan(Options const& options, int ranks) const override { return plan_model_parallel(shape(options, ranks)); }

  Prediction predict(Options const& options, std::vector<BlockShape> const&, int ranks) const override {
    return predict_pipeline(options, Pipeline::model_parallel, shape(options, ranks));
  }

 private:
  static PipelineShape shape(Options const& options, int ranks) { return {.stages = ranks, .micros = options.micros}; }
};

}  // namespace

std::unique_ptr<Strategy> make_model_parallel() { return std::make_unique<ModelParallel>(); }

}  // namespace shardmark
