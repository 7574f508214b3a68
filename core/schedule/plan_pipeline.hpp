#pragma once
// What all planners of pipelines write with. Internal to core/schedule.

#include <string>
#include <vector>

#include "schedule/planners.hpp"

namespace shardmark {

/// Appends actions to one section of a lane, in the words of the papers.
class LaneWriter {
 public:
  explicit LaneWriter(std::vector<Action>& actions) : actions_(actions) {}
  void forward(int chunk, int micro, int version = 0) { add(Do::forward, chunk, micro, version); }
  void backward(int chunk, int micro, int version = 0) { add(Do::backward, chunk, micro, version); }
  void backward_input(int chunk, int micro) { add(Do::backward_input, chunk, micro, 0); }
  void backward_weight(int chunk, int micro) { add(Do::backward_weight, chunk, micro, 0); }
  /// Gradients of an update are complete.
  void reduce() { actions_.push_back({.what = Do::reduce}); }
  void update(int version) { actions_.push_back({.what = Do::update, .version = {version}}); }
  /// The end of a synchronous window: reduce, then the one update.
  void finish_window() {
    reduce();
    update(1);
  }

 private:
  void add(Do what, int chunk, int micro, int version) {
    actions_.push_back({.what = what, .chunk = {chunk}, .micro = {micro}, .version = {version}});
  }
  std::vector<Action>& actions_;
};

/// How the chunks are placed on the stages.
enum class ChunkPlacement : std::uint8_t {
  loop,  // 0 1 2 0 1 2
  vee    // 0 1 2 2 1 0
};

/// Empty lanes of a synchronous pipeline. @throws BadRequest for a shape without stages, micro-batches or chunks.
Schedule empty_pipeline(std::string name, PipelineShape shape, ChunkPlacement placement = ChunkPlacement::loop);
/// The same for schedules that have one chunk a stage.
Schedule empty_unchunked_pipeline(std::string name, PipelineShape shape);

/// Rounds of an interleaved pipeline in which its micro-batches enter, as equal as can be, and the most micro-batches of one.
int rounds(PipelineShape shape);
int longest_round(PipelineShape shape);

/// ZeroBubble::v.
Schedule plan_vee(PipelineShape shape);

}  // namespace shardmark
