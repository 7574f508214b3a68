// Naive model parallelism, p=3, m=2: one stage works, the others wait.
//   stage 0 | F0  .  .  .  . B0 F1  .  .  .  . B1  R  U
//   stage 1 |  . F0  .  . B0  .  . F1  .  . B1  R  U
//   stage 2 |  .  . F0 B0  .  .  .  . F1 B1  R  U

#include "schedule/plan_pipeline.hpp"

namespace shardmark {

Schedule plan_model_parallel(PipelineShape shape) {
  Schedule schedule = empty_unchunked_pipeline("model_parallel", shape);
  for (int stage = 0; stage < shape.stages; ++stage) {
    LaneWriter lane(schedule.lanes[std::size_t(stage)].body);
    for (int m = 0; m < shape.micros; ++m) {
      lane.forward(stage, m);
      lane.backward(stage, m);
    }
    lane.finish_window();
  }
  return schedule;
}

}  // namespace shardmark
