// 1F1B with a flush (Narayanan et al., PipeDream-Flush, ICML 2021), p=3, m=4, backward as long as forward:
//   stage 0 | F0 F1 F2  .  . B0 F3 B1  . B2  . B3  R  U
//   stage 1 |  . F0 F1  . B0 F2 B1 F3 B2  . B3  R  U
//   stage 2 |  .  . F0 B0 F1 B1 F2 B2 F3 B3  R  U
// Stage s runs p-1-s forwards ahead, so it keeps at most p-s micro-batches, whatever m is.

#include <algorithm>

#include "schedule/plan_pipeline.hpp"

namespace shardmark {

Schedule plan_1f1b(PipelineShape shape) {
  Schedule schedule = empty_unchunked_pipeline("1f1b", shape);
  for (int stage = 0; stage < shape.stages; ++stage) {
    LaneWriter lane(schedule.lanes[std::size_t(stage)].body);
    int const ahead = std::min(shape.micros, shape.stages - 1 - stage);
    for (int m = 0; m < ahead; ++m) lane.forward(stage, m);
    for (int m = ahead; m < shape.micros; ++m) {
      lane.forward(stage, m);
      lane.backward(stage, m - ahead);
    }
    for (int m = shape.micros - ahead; m < shape.micros; ++m) lane.backward(stage, m);
    lane.finish_window();
  }
  return schedule;
}

}  // namespace shardmark
