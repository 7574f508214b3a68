// PipeDream without a flush (Narayanan et al., SOSP 2019, figure 8), p=3, an update after each backward. Sections as in schedule.hpp:
//   stage 0 | F0 F1 F2  .  . B0  R  U F3 B1  R  U  . B2  R  U  . B3  R  U     forwards read versions 0 0 0 1
//   stage 1 |  . F0 F1  . B0  R  U F2 B1  R  U F3 B2  R  U  . B3  R  U                             0 0 1 2
//   stage 2 |  .  . F0 B0  R  U F1 B1  R  U F2 B2  R  U F3 B3  R  U                                0 1 2 3
// `vertical` reads on every stage what the first stage reads; `two_buffers` updates once a window and reads the version before the latest.

#include <fmt/format.h>

#include "base/error.hpp"
#include "schedule/plan_pipeline.hpp"

namespace shardmark {
namespace {

std::string_view name(Delay delay) {
  switch (delay) {
    case Delay::stash:
      return "pipedream-stash";
    case Delay::vertical:
      return "pipedream-vertical";
    case Delay::two_buffers:
      return "pipedream-2bw";
  }
  return "?";
}

/// The version that micro-batch `micro` reads on a stage that runs `behind` backwards behind its forwards.
int version_read(Delay delay, PipelineShape shape, int behind, int micro) {
  switch (delay) {
    case Delay::stash:
      return micro - behind;
    case Delay::vertical:
      return micro - (shape.stages - 1);
    case Delay::two_buffers:
      return micro / shape.micros - 1;
  }
  return 0;
}

}  // namespace

Schedule plan_pipedream(PipelineShape shape, Delay delay) {
  if (delay != Delay::two_buffers) shape.micros = std::min(shape.micros, 1);
  Schedule schedule = empty_unchunked_pipeline(std::string(name(delay)), shape);
  require_input(delay != Delay::two_buffers || shape.micros >= shape.stages,
                {fmt::format("2bw with {} micro-batches for {} stages", shape.micros, shape.stages),
                 "a stage would need a third version of its weights while older micro-batches are in flight",
                 fmt::format("raise the micro-batches to at least {}", shape.stages)});
  schedule.weights = delay == Delay::stash ? Weights::latest : Weights::delayed;
  int const window = shape.micros;
  int const started = (shape.stages - 1 + window - 1) / window * window;  // whole windows, enough to fill the pipeline
  for (int stage = 0; stage < shape.stages; ++stage) {
    Lane& lane = schedule.lanes[std::size_t(stage)];
    int const behind = shape.stages - 1 - stage;
    auto const backward = [&](LaneWriter& writer, int micro) {
      writer.backward(stage, micro, version_read(delay, shape, behind, micro));
      if ((micro + 1) % window == 0) writer.update((micro + 1) / window);
    };
    auto const one_each = [&](std::vector<Action>& section, int begin, int end) {
      LaneWriter writer(section);
      for (int m = begin; m < end; ++m) {
        writer.forward(stage, m, version_read(delay, shape, behind, m));
        if (m >= behind) backward(writer, m - behind);
      }
    };
    one_each(lane.prologue, 0, started);
    one_each(lane.body, started, started + window);
    LaneWriter drain(lane.epilogue);
    for (int m = started - behind; m < started; ++m) backward(drain, m);
  }
  return schedule;
}

}  // namespace shardmark
