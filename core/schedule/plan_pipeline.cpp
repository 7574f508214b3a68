#include "schedule/plan_pipeline.hpp"

#include <fmt/format.h>

#include "base/error.hpp"

namespace shardmark {

Schedule empty_pipeline(std::string name, PipelineShape shape, ChunkPlacement placement) {
  int const stages = shape.stages, micros = shape.micros, chunks = shape.chunks_per_stage;
  require_input(stages >= 1 && micros >= 1 && chunks >= 1,
                {fmt::format("{} with {} stages, {} micro-batches and {} chunks a stage", name, stages, micros, chunks),
                 "a pipeline needs one of each", "raise what is 0"});
  Schedule schedule;
  schedule.name = std::move(name);
  for (int chunk = 0; chunk < stages * chunks; ++chunk) {
    int const turn = chunk / stages, place = chunk % stages;
    bool const back = placement == ChunkPlacement::vee && turn % 2 == 1;
    schedule.lane_of_chunk.push_back(back ? stages - 1 - place : place);
  }
  schedule.lanes.resize(std::size_t(stages));
  schedule.micros_per_window = micros;
  schedule.leaves = {1, micros};
  return schedule;
}

Schedule empty_unchunked_pipeline(std::string name, PipelineShape shape) {
  require_input(shape.chunks_per_stage == 1, {fmt::format("{} with {} chunks a stage", name, shape.chunks_per_stage),
                                              "each stage is one chunk here", "ask for one, or for the interleaved schedule"});
  return empty_pipeline(std::move(name), shape);
}

}  // namespace shardmark
