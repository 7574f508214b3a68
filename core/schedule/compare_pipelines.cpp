#include "schedule/compare_pipelines.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "base/error.hpp"
#include "schedule/check.hpp"
#include "schedule/simulate.hpp"

namespace shardmark {
namespace {

int chunks_of(Pipeline kind, int asked) {
  switch (kind) {
    case Pipeline::interleaved:
      return asked == 1 ? 2 : asked;
    case Pipeline::zb_v:
      return 2;
    default:
      return 1;
  }
}

void measure(PipelineRow& row, PipelineShape shape, StageSeconds seconds) {
  Schedule const schedule = plan_pipeline(row.kind, shape);
  double const share = shape.chunks_per_stage;
  ChunkSeconds const chunk{seconds.forward / share, seconds.input / share, seconds.weight / share};
  int const windows = shape.micros / schedule.micros_per_window;  // stash and vertical: one micro-batch each
  row.window = windows * window_seconds(schedule, costs_of(std::vector(schedule.lane_of_chunk.size(), chunk)));
  row.bubble = std::max(0.0, 1 - shape.micros * seconds.all() / row.window);
  ClosedForms const forms = closed_forms(row.kind, shape, seconds);
  row.closed_form = forms.bubble && std::abs(*forms.bubble - row.bubble) < 1e-9;
  row.messages = int(forms.messages) * windows;
  for (LaneFacts const& lane : check(schedule, {}).lanes) {
    row.live = std::max(row.live, lane.peak_held / share);
    row.versions = std::max(row.versions, lane.peak_versions);
    row.staleness = std::max(row.staleness, lane.staleness);
  }
}

}  // namespace

std::vector<PipelineRow> compare_pipelines(PipelineShape shape, StageSeconds seconds) {
  int const chunks = shape.chunks_per_stage;
  std::vector<PipelineRow> rows;
  for (Pipeline kind : pipelines) {
    PipelineRow& row = rows.emplace_back();
    row.kind = kind;
    row.chunks_per_stage = shape.chunks_per_stage = chunks_of(kind, chunks);
    try {
      measure(row, shape, seconds);
    } catch (BadRequest const& problem) {
      row.refusal = problem.what();
    }
  }
  return rows;
}

std::string to_table(std::vector<PipelineRow> const& rows, double message_bytes) {
  std::string text, refusals;
  auto const out = std::back_inserter(text);
  fmt::format_to(out, "{:<19}{:>7}{:>11}{:>9}{:>10}{:>7}{:>9}{:>10}{:>9}{:>9}\n", "pipeline", "chunks", "window", "bubble", "formula",
                 "live", "versions", "staleness", "messages", "MB");
  for (PipelineRow const& row : rows) {
    if (!row.refusal.empty()) {
      refusals += fmt::format("{}\n", row.refusal);
      continue;
    }
    fmt::format_to(out, "{:<19}{:>7}{:>11.4g}{:>8.1f}%{:>10}{:>7.3g}{:>9}{:>10}{:>9}{:>9.4g}\n", name(row.kind), row.chunks_per_stage,
                   row.window, row.bubble * 100, row.closed_form ? "the same" : "none", row.live, row.versions, row.staleness, row.messages,
                   row.messages * message_bytes * 1e-6);
  }
  return text + refusals;
}

}  // namespace shardmark
