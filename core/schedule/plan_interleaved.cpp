// Interleaved 1F1B (Narayanan et al., SC 2021, figure 4), p=2, v=2, m=4; a and b are the first and second chunk of a stage:
//   stage 0 | F0a F1a F0b F1b F2a B0b F3a B1b F2b B0a F3b B1a   . B2b   . B3b B2a B3a   R   U
//   stage 1 |   . F0a F1a F0b B0b F1b B1b F2a B0a F3a B1a F2b B2b F3b B3b B2a B3a   R   U
// The order of all lanes is the same: round by round, in a round chunk by chunk, in a chunk the micro-batches of the round ascending;
// backward chunks descend. Lanes differ in how far the forwards run ahead. A round must have p micro-batches or more, else its second
// chunk comes round before the first one has left: with m not divisible by p some rounds are longer.

#include <algorithm>

#include "base/ranges.hpp"
#include "schedule/plan_pipeline.hpp"

namespace shardmark {
namespace {

/// A chunk's place on its stage, and a micro-batch.
struct Turn {
  int chunk = 0;
  int micro = 0;
};

std::vector<Turn> forward_order(PipelineShape shape) {
  std::vector<Turn> order;
  for (int round = 0; round < rounds(shape); ++round) {
    Range const micros = piece_of(shape.micros, rounds(shape), round);
    for (int chunk = 0; chunk < shape.chunks_per_stage; ++chunk) {
      for (auto m = micros.begin; m < micros.end; ++m) order.push_back({chunk, int(m)});
    }
  }
  return order;
}

}  // namespace

int rounds(PipelineShape shape) { return std::max(1, shape.micros / shape.stages); }
int longest_round(PipelineShape shape) { return int(piece_of(shape.micros, rounds(shape), 0).size()); }

Schedule plan_interleaved(PipelineShape shape) {
  if (shape.chunks_per_stage == 1) return plan_1f1b(shape);
  Schedule schedule = empty_pipeline("interleaved", shape);
  std::vector<Turn> const order = forward_order(shape);
  std::size_t const total = order.size();
  for (int stage = 0; stage < shape.stages; ++stage) {
    LaneWriter lane(schedule.lanes[std::size_t(stage)].body);
    auto const forward = [&](std::size_t k) { lane.forward(order[k].chunk * shape.stages + stage, order[k].micro); };
    auto const backward = [&](std::size_t k) {
      lane.backward((shape.chunks_per_stage - 1 - order[k].chunk) * shape.stages + stage, order[k].micro);
    };
    int const lead = 2 * (shape.stages - 1 - stage) + (shape.chunks_per_stage - 1) * longest_round(shape);
    std::size_t const ahead = std::min(total, std::size_t(lead));
    for (std::size_t k = 0; k < ahead; ++k) forward(k);
    for (std::size_t k = ahead; k < total; ++k) {
      forward(k);
      backward(k - ahead);
    }
    for (std::size_t k = total - ahead; k < total; ++k) backward(k);
    lane.finish_window();
  }
  return schedule;
}

}  // namespace shardmark
