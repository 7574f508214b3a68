// GPipe (Huang et al., NeurIPS 2019, figure 2c), p=4, m=4, newest backward first, backward as long as forward:
//   stage 0 | F0 F1 F2 F3  .  .  .  .  .  . B3 B2 B1 B0  R  U
//   stage 1 |  . F0 F1 F2 F3  .  .  .  . B3 B2 B1 B0  R  U
//   stage 2 |  .  . F0 F1 F2 F3  .  . B3 B2 B1 B0  R  U
//   stage 3 |  .  .  . F0 F1 F2 F3 B3 B2 B1 B0  R  U

#include "schedule/plan_pipeline.hpp"

namespace shardmark {

Schedule plan_gpipe(PipelineShape shape, BackwardOrder order) {
  Schedule schedule = empty_unchunked_pipeline("gpipe", shape);
  for (int stage = 0; stage < shape.stages; ++stage) {
    LaneWriter lane(schedule.lanes[std::size_t(stage)].body);
    for (int m = 0; m < shape.micros; ++m) lane.forward(stage, m);
    for (int m = 0; m < shape.micros; ++m) lane.backward(stage, order == BackwardOrder::oldest_first ? m : shape.micros - 1 - m);
    lane.finish_window();
  }
  return schedule;
}

}  // namespace shardmark
