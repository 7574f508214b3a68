#pragma once
// What the papers say that a pipeline costs, where it is exact. Outside of that domain there is no formula: the simulator is the
// prediction.

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "schedule/planners.hpp"

namespace shardmark {

/// The pipelines that can be planned by name.
enum class Pipeline : std::uint8_t {
  model_parallel,
  gpipe,
  one_forward_one_backward,
  interleaved,
  zb_h1,
  zb_h2,
  zb_v,
  stash,
  vertical,
  two_buffers
};
inline constexpr Pipeline pipelines[] = {Pipeline::model_parallel, Pipeline::gpipe, Pipeline::one_forward_one_backward,
                                         Pipeline::interleaved,    Pipeline::zb_h1, Pipeline::zb_h2,
                                         Pipeline::zb_v,           Pipeline::stash, Pipeline::vertical,
                                         Pipeline::two_buffers};
std::string_view name(Pipeline kind);
/// @throws BadRequest as the planner does
Schedule plan_pipeline(Pipeline kind, PipelineShape shape);

/// Of one whole stage and micro-batch; all stages alike, chunks take equal shares. Any unit of time.
struct StageSeconds {
  double forward = 1, input = 1, weight = 1;
  double all() const { return forward + input + weight; }
};

/// Per window; asynchronous pipelines: of one more window in steady state. std::nullopt: no exact formula for this shape and costs.
struct ClosedForms {
  std::optional<double> lane_idle, barrier_idle;  // as in Timeline: largest over the stages
  std::optional<double> bubble;                   // barrier_idle as a share of the time that a window takes
  // For each stage, in chunks and micro-batches, as check() counts a coarse schedule:
  std::optional<std::vector<int>> stashes;  // live until backward, or its input half (LaneFacts::peak_stashes)
  std::optional<std::vector<int>> held;     // until the weight half (LaneFacts::peak_held)
  std::vector<int> versions, staleness;     // always known
  std::vector<int> gradients;               // updates whose gradients are held at once; always known
  std::int64_t messages = 0;                // activations and gradients that cross between stages; always known
};
ClosedForms closed_forms(Pipeline kind, PipelineShape shape, StageSeconds seconds);

}  // namespace shardmark
