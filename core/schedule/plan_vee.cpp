// ZB-V (Qi et al., "Pipeline parallelism with controllable memory", NeurIPS 2024, figure 4): the second chunks lie in opposite order, so
// the last stage turns a micro-batch round at once and the first stage has both ends. p=2, m=4, F = B = W, a and b the chunks of a stage:
//   stage 0 | F0a F1a F2a F0b B0b W0b F1b B1b W1b F3a B0a W0a F2b B2b W2b B1a W1a F3b B3b W3b B2a W2a B3a W3a   R   U
//   stage 1 |   . F0a F0b F1a F1b B0b W0b F2a B0a W0a F2b B1b W1b F3a B1a W1a F3b B2b W2b B2a B3b B3a W2a W3b W3a   R   U
// Every stage holds at most 2p chunks, as much as p whole stages.

#include <fmt/format.h>

#include <algorithm>

#include "base/error.hpp"
#include "schedule/plan_pipeline.hpp"

namespace shardmark {
namespace {

/// One stage's lane in a pipeline that has enough micro-batches to be full; those beyond `micros` are left out.
class VeeLane {
 public:
  VeeLane(std::vector<Action>& actions, PipelineShape shape, int stage)
      : lane_(actions), shape_(shape), stage_(stage), full_(std::max(shape.micros, 2 * shape.stages - 1)) {}

  void write() {
    int const from_end = shape_.stages - stage_;
    for (int i = 0; i < 2 * from_end - 1; ++i) forward(0);
    for (int i = 0; i < stage_; ++i) {
      forward(1);
      forward(0);
    }
    for (int i = 0; i < from_end; ++i) {
      forward(1);
      backward(1);
    }
    while (forwards_[1] < forwards_[0] || forwards_[0] < full_) {
      if (forwards_[0] < full_) forward(0);
      backward(0);
      forward(1);
      backward(1);
    }
    for (int i = 0; i < stage_; ++i) {
      input(0);
      input(1);
    }
    for (int i = 0; i < from_end; ++i) {
      input(0);
      weight(0);
    }
    for (int turn : {1, 0}) {
      while (weights_[turn] < full_) weight(turn);
    }
    lane_.finish_window();
  }

 private:
  int chunk(int turn) const { return turn == 0 ? stage_ : 2 * shape_.stages - 1 - stage_; }
  bool enters(int micro) const { return micro < shape_.micros; }
  void forward(int turn) {
    int const micro = forwards_[turn]++;
    if (enters(micro)) lane_.forward(chunk(turn), micro);
  }
  void input(int turn) {
    int const micro = inputs_[turn]++;
    if (enters(micro)) lane_.backward_input(chunk(turn), micro);
  }
  void weight(int turn) {
    int const micro = weights_[turn]++;
    if (enters(micro)) lane_.backward_weight(chunk(turn), micro);
  }
  void backward(int turn) {
    input(turn);
    weight(turn);
  }

  LaneWriter lane_;
  PipelineShape shape_;
  int stage_;
  int full_;
  int forwards_[2] = {}, inputs_[2] = {}, weights_[2] = {};  // next micro-batch of each chunk
};

}  // namespace

Schedule plan_vee(PipelineShape shape) {
  require_input(shape.chunks_per_stage == 2, {fmt::format("zb-v with {} chunks a stage", shape.chunks_per_stage),
                                              "the V has one chunk on the way down and one on the way back", "ask for two"});
  Schedule schedule = empty_pipeline("zb-v", shape, ChunkPlacement::vee);
  for (int stage = 0; stage < shape.stages; ++stage) VeeLane(schedule.lanes[std::size_t(stage)].body, shape, stage).write();
  return schedule;
}

}  // namespace shardmark
