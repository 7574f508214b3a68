// PipeDream: one forward, one backward. With a flush it is synchronous (Narayanan et al., ICML 2021; interleaved: SC 2021; backward in
// two parts: Qi et al., ICLR 2024). Without one it is asynchronous: the pipeline stays full, and gradients are of older weights
// (PipeDream, SOSP 2019; double-buffered weights, ICML 2021).
//
//   P=3, flush, M=4:                              stash, an update after each backward:
//   stage 0 | F0 F1 F2  .  . B0 F3 B1  . B2  . B3  U   | F0 F1 F2  .  . B0 F3 B1 F4 B2 F5 ...
//   stage 1 |  . F0 F1  . B0 F2 B1 F3 B2  . B3  .  U   |  . F0 F1  . B0 F2 B1 F3 B2 F4 B3 ...
//   stage 2 |  .  . F0 B0 F1 B1 F2 B2 F3 B3  .  .  U   |  .  . F0 B0 F1 B1 F2 B2 F3 B3 F4 ...

#include "strategies/pipedream/pipedream.hpp"

#include <fmt/format.h>

namespace shardmark {
namespace {

constexpr int usual_micro_batches = 4;

/// Which of the family the options ask for.
Pipeline kind_of(Options const& options) {
  switch (options.mode) {
    case PipelineMode::flush:
      break;
    case PipelineMode::stash:
      return Pipeline::stash;
    case PipelineMode::vertical:
      return Pipeline::vertical;
    case PipelineMode::two_buffers:
      return Pipeline::two_buffers;
  }
  switch (options.split_backward) {
    case SplitBackward::off:
      break;
    case SplitBackward::h1:
      return Pipeline::zb_h1;
    case SplitBackward::h2:
      return Pipeline::zb_h2;
    case SplitBackward::v:
      return Pipeline::zb_v;
  }
  return options.virtual_stages > 1 ? Pipeline::interleaved : Pipeline::one_forward_one_backward;
}

PipelineShape shape_of(Options const& options, int ranks) {
  // Alone, a stage decides by itself.
  Decisions const decides = ranks > 1 ? decisions_without_flush(options) : Decisions::per_lane;
  int const chunks = options.split_backward == SplitBackward::v ? 2 : options.virtual_stages;
  return {.stages = ranks, .micros = options.micros, .chunks_per_stage = chunks, .decisions = decides};
}

class Pipedream final : public Strategy {
 public:
  std::string name() const override { return "pipedream"; }
  std::vector<std::string> offers() const override {
    return {"mode", "virtual-stages", "split-backward", "balance", "split-points", "recompute", "schedule", "compare", "svg"};
  }
  int usual_micros() const override { return usual_micro_batches; }

  std::optional<Refusal> refuse(Options const& options, int ranks) const override {
    bool const splits = options.split_backward != SplitBackward::off, interleaves = options.virtual_stages > 1;
    if (splits && interleaves)
      return Refusal{
          fmt::format("--split-backward {} with --virtual-stages {}", shardmark::name(options.split_backward), options.virtual_stages),
          "v has two chunks a rank by itself, h1 and h2 have one", "leave one out"};
    if (options.mode != PipelineMode::flush) return refuse_asynchronous(options, ranks, splits || interleaves);
    return {};
  }

  MeshShape mesh(Options const&, int ranks) const override { return {.pipeline = ranks}; }

  Schedule plan(Options const& options, int ranks) const override { return plan_pipeline(kind_of(options), shape_of(options, ranks)); }

  /// Validation rule 16: by how many updates the weights of a stage lag.
  Lag lag(Options const& options, int ranks) const override {
    if (options.mode == PipelineMode::flush) return {};
    Lag out{options.mode == PipelineMode::two_buffers ? UpdateOf::batch : UpdateOf::micro, {}};
    for (int stage = 0; stage < ranks; ++stage)
      out.of_chunk.push_back(options.mode == PipelineMode::stash      ? ranks - 1 - stage
                             : options.mode == PipelineMode::vertical ? ranks - 1
                                                                      : 1);
    return out;
  }

  Prediction predict(Options const& options, std::vector<BlockShape> const&, int ranks) const override {
    return predict_pipeline(options, kind_of(options), shape_of(options, ranks));
  }

 private:
  static std::optional<Refusal> refuse_asynchronous(Options const& options, int ranks, bool other_schedule) {
    std::string const mode = fmt::format("--mode {}", shardmark::name(options.mode));
    if (other_schedule)
      return Refusal{mode + " with --virtual-stages or --split-backward", "these fill the bubble of a flush, and there is none",
                     "leave one out"};
    if (options.mode != PipelineMode::stash || decisions_without_flush(options) == Decisions::per_lane || ranks == 1) return {};
    return Refusal{mode + (options.clip_norm > 0 ? " with --clip-norm" : " with --tied-embeddings"),
                   "later stages need their next weights before the first one has its gradients",
                   "leave it out, or use --mode vertical, 2bw or flush"};
  }
};

}  // namespace

std::unique_ptr<Strategy> make_pipedream() { return std::make_unique<Pipedream>(); }

}  // namespace shardmark
