#pragma once
// All pipelines side by side at one shape and one set of costs: `plan --compare`.

#include <string>
#include <vector>

#include "schedule/closed_forms.hpp"

namespace shardmark {

struct PipelineRow {
  Pipeline kind = {};
  std::string refusal = {};  // why this shape can't be planned; the rest is then meaningless
  int chunks_per_stage = 1;
  double window = 0;         // time of one window of micro-batches: the makespan; asynchronous: one more in steady state
  double bubble = 0;         // share of it that the stages don't compute, on average over stages that are all alike
  bool closed_form = false;  // the formula holds here and gives the same
  double live = 0;           // largest over the stages, in whole stages and micro-batches, until the last half of backward
  int versions = 1;          // of weights on the stage with most of them
  int staleness = 0;         // largest
  int messages = 0;          // between stages, per window
};

/// `shape.chunks_per_stage`: of the interleaved pipeline (1: two); zb-v has two, the others one. A window is `shape.micros` micro-batches,
/// also of asynchronous pipelines. Simulated with messages that take no time.
std::vector<PipelineRow> compare_pipelines(PipelineShape shape, StageSeconds seconds);

/// At most 100 columns wide, refusals below. `message_bytes`: of one of its messages, all alike.
std::string to_table(std::vector<PipelineRow> const& rows, double message_bytes);

}  // namespace shardmark
