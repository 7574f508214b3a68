#include "app/pictures.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>

#include "app/nearest.hpp"
#include "app/trace_spans.hpp"
#include "record/files.hpp"

namespace shardmark {
namespace {

/// Repetitions of the body in which `micros` micro-batches are forwarded, those of the prologue included.
int windows_for(Schedule const& schedule, int micros) {
  int entered = 0;
  for (Action const& action : schedule.lanes.front().prologue)
    if (action.what == Do::forward) entered = std::max(entered, action.micro.v + 1);
  int const per_window = schedule.micros_per_window;
  return std::max(0, (micros - entered + per_window - 1) / per_window);
}

/// In seconds since the first action, micro-batches from 0, as a replay has them.
std::vector<Span> spans_of(Job const& job, std::vector<std::vector<TraceSpan>> const& by_rank) {
  std::vector<Span> out;
  for (std::size_t rank = 0; rank < by_rank.size(); ++rank) {
    auto const spans = measured_spans(by_rank[rank], job.mesh.stage_of(int(rank)), 0);
    out.insert(out.end(), spans.begin(), spans.end());
  }
  std::int32_t first_micro = std::numeric_limits<std::int32_t>::max();
  double begin = out.empty() ? 0 : out.front().begin;
  for (Span const& span : out) {
    if (span.action.what == Do::forward) first_micro = std::min(first_micro, span.action.micro.v);
    begin = std::min(begin, span.begin);
  }
  for (Span& span : out) {
    span.action.micro = span.action.chunk.valid() ? MicroId{span.action.micro.v - first_micro} : MicroId{};
    span.begin -= begin;
    span.end -= begin;
  }
  return out;
}

}  // namespace

void require_new_file(std::string const& path, std::string const& option) {
  require_input(!std::filesystem::exists(std::filesystem::symlink_status(path)),
                {fmt::format("{} {} exists", option, printable(path)), "nothing is overwritten", "choose another name, or remove it"});
  record::require_appendable(path, option);
}

SvgStyle picture_style(Job const& job, std::string title) {
  return {.title = std::move(title),
          .lane_of_chunk = job.schedule.lane_of_chunk,
          .form = job.schedule.form,
          .colours = Colours::kind,
          .unit = "ms",
          .scale = 1e3};
}

std::string measured_picture(Job const& job, std::vector<std::vector<TraceSpan>> const& by_rank, std::optional<Costs> const& costs,
                             int batches, std::string title) {
  auto const measured = spans_of(job, by_rank);
  SvgStyle const style = picture_style(job, std::move(title));
  if (!costs) return render_svg(measured, style);
  int const micros = batches * job.updates_per_batch() * job.schedule.micros_per_window;
  return render_svg(simulate(job.schedule, *costs, windows_for(job.schedule, micros)).spans, measured, style);
}

}  // namespace shardmark
