// Zero bubble: backward in its input half (B) and its weight half (W), which nobody waits for and which fills bubbles
// (Qi et al., ICLR 2024, figures 2 and 3). p=3, m=6, F = B = W:
//   H1: W follows so late that a stage holds p micro-batches until W, as many as 1F1B's first stage
//   stage 0 | F0 F1 F2  .  . B0 W0 F3 B1 W1 F4 B2 W2 F5 B3 W3 B4 W4 B5 W5  R  U
//   stage 1 |  . F0 F1  . B0 F2 B1 W0 F3 B2 W1 F4 B3 W2 F5 B4 W3 B5 W4 W5  R  U
//   stage 2 |  .  . F0 B0 F1 B1 F2 B2 W0 F3 B3 W1 F4 B4 W2 F5 B5 W3 W4 W5  R  U
//   H2: the first stage forwards 2p-1 micro-batches ahead
//   stage 0 | F0 F1 F2 F3 F4 B0 W0 F5 B1 W1 B2 W2 B3 W3 B4 W4 B5 W5  R  U
//   stage 1 |  . F0 F1 F2 B0 F3 B1 F4 B2 W0 F5 B3 W1 B4 W2 B5 W3 W4 W5  R  U
//   stage 2 |  .  . F0 B0 F1 B1 F2 B2 F3 B3 F4 B4 W0 F5 B5 W1 W2 W3 W4 W5  R  U

#include <algorithm>

#include "schedule/plan_pipeline.hpp"

namespace shardmark {
namespace {

/// `reach` 1: H1, 2: H2; how far forwards run ahead and weight halves fall behind, in distances to the last and the first stage.
Schedule plan_handcrafted(std::string name, PipelineShape shape, int reach) {
  Schedule schedule = empty_unchunked_pipeline(std::move(name), shape);
  for (int stage = 0; stage < shape.stages; ++stage) {
    LaneWriter lane(schedule.lanes[std::size_t(stage)].body);
    int const ahead = std::min(shape.micros, reach * (shape.stages - 1 - stage) + 1);
    int const behind = reach * stage;
    int forward = 0, weight = 0;
    while (forward < ahead) lane.forward(stage, forward++);
    for (int m = 0; m < shape.micros; ++m) {
      lane.backward_input(stage, m);
      if (m >= behind) lane.backward_weight(stage, weight++);
      if (forward < shape.micros) lane.forward(stage, forward++);
    }
    while (weight < shape.micros) lane.backward_weight(stage, weight++);
    lane.finish_window();
  }
  return schedule;
}

}  // namespace

Schedule plan_zero_bubble(PipelineShape shape, ZeroBubble kind) {
  switch (kind) {
    case ZeroBubble::h1:
      return plan_handcrafted("zb-h1", shape, 1);
    case ZeroBubble::h2:
      return plan_handcrafted("zb-h2", shape, 2);
    case ZeroBubble::v:
      return plan_vee(shape);
  }
  return {};
}

}  // namespace shardmark
