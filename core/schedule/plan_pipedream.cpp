// PipeDream without a flush (Narayanan et al., SOSP 2019, figure 8), p=3, an update after each backward. Sections as in schedule.hpp:
//   stage 0 | F0 F1 F2  .  . B0  R  U F3 B1  R  U  . B2  R  U  . B3  R  U     forwards read versions 0 0 0 1
//   stage 1 |  . F0 F1  . B0  R  U F2 B1  R  U F3 B2  R  U  . B3  R  U                             0 0 1 2
//   stage 2 |  .  . F0 B0  R  U F1 B1  R  U F2 B2  R  U F3 B3  R  U                                0 1 2 3
// `vertical` reads on every stage what the first stage reads; `two_buffers` updates once a window and reads the version before the latest.
//
// Joint decisions (Decisions::joint; vertical). The first stage has the gradients of update j last, in front of its forward j+p, and every
// stage reads the weights that j makes from forward j+p on: all update in front of that. Stage s has gradients of s+1 updates by then. It
// gives its part (R) at once, and forward j+p comes to it from the first stage, behind the decision: no stage waits longer than before.
//   stage 0 | F0 F1 F2  .  . B0  R  U F3 B1  R  U B2  R  U B3  R  U     forwards read versions 0 0 0 1
//   stage 1 |  . F0 F1  . B0  R F2 B1  R  U F3 B2  R  U B3  R  U  U                        0 0 0 1
//   stage 2 |  .  . F0 B0  R F1 B1  R F2 B2  R  U F3 B3  R  U  U  U                        0 0 0 1

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
  bool const joint = shape.decisions == Decisions::joint;
  require_input(!joint || delay != Delay::stash, {"stash with decisions that all stages take together",
                                                  "later stages need their next weights before the first one has its gradients",
                                                  "let each stage decide for itself, or read older weights (vertical, 2bw)"});
  require_input(delay != Delay::two_buffers || shape.micros >= shape.stages,
                {fmt::format("2bw with {} micro-batches for {} stages", shape.micros, shape.stages),
                 "a stage would need a third version of its weights while older micro-batches are in flight",
                 fmt::format("raise the micro-batches to at least {}", shape.stages)});
  schedule.weights = delay == Delay::stash ? Weights::latest : Weights::delayed;
  schedule.decisions = shape.decisions;
  int const window = shape.micros;
  int const started = (shape.stages - 1 + window - 1) / window * window;  // whole windows, enough to fill the pipeline
  for (int stage = 0; stage < shape.stages; ++stage) {
    Lane& lane = schedule.lanes[std::size_t(stage)];
    int const behind = shape.stages - 1 - stage;
    int const decided_behind = joint ? shape.stages - 1 : behind;  // the first stage's backwards come last
    /// Turn m: forward m, and what is due behind it.
    auto const turns = [&](std::vector<Action>& section, int begin, int end, int forwards_end) {
      LaneWriter writer(section);
      auto const ends_window = [&](int micro) { return micro >= 0 && (micro + 1) % window == 0; };
      for (int m = begin; m < end; ++m) {
        if (m < forwards_end) writer.forward(stage, m, version_read(delay, shape, behind, m));
        int const back = m - behind, decided = m - decided_behind;
        if (back >= 0 && back < forwards_end) {
          writer.backward(stage, back, version_read(delay, shape, behind, back));
          if (ends_window(back)) writer.reduce();
        }
        if (ends_window(decided)) writer.update((decided + 1) / window);
      }
    };
    turns(lane.prologue, 0, started, started);
    turns(lane.body, started, started + window, started + window);
    turns(lane.epilogue, started, started + decided_behind, started);
  }
  return schedule;
}

}  // namespace shardmark
