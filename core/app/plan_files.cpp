// What plan writes: the schedule's text, its picture, its trace.

#include <fstream>

#include "app/pictures.hpp"
#include "app/plan.hpp"
#include "app/trace_spans.hpp"
#include "app/traced.hpp"
#include "record/files.hpp"
#include "schedule/text.hpp"

namespace shardmark {
namespace {

constexpr int batches_without_flush = 2;

/// One window, or enough of them to show a pipeline without a flush that is full.
int windows_of_picture(Job const& job) {
  if (job.schedule.synchronous()) return 1;
  return job.update == UpdateOf::micro ? 2 * int(job.schedule.lanes.size()) : batches_without_flush;
}

}  // namespace

void require_plan_files(Options const& options) {
  if (!options.out.empty()) require_new_file(options.out, "--out");
  if (!options.svg.empty()) require_new_file(options.svg, "--svg");
  if (!options.trace.empty()) record::require_appendable(options.trace, "--trace");
}

void write_plan_files(Plan const& plan, Options const& options) {
  if (!options.out.empty()) record::replace_file(options.out, to_text(plan.drawn));
  if (options.svg.empty() && options.trace.empty()) return;
  Timeline const timeline =
      simulate(plan.job.schedule, predicted_costs(plan.job, plan.seconds_of_lane, plan.probe), windows_of_picture(plan.job));
  if (!options.svg.empty())
    record::replace_file(options.svg, render_svg(timeline.spans, picture_style(plan.job, options.program + ", planned")));
  if (!options.trace.empty()) write_trace(options.trace, planned_trace(timeline));
}

}  // namespace shardmark
