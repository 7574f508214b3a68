// The pictures of the pipeline papers, one slot for each action, every action as long as the others:
//
//   stage 0 | F0 F1  .  . B1 B0  R  U
//   stage 1 |  . F0 F1 B1 B0  R  U

#include "schedule/render.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>

#include "schedule/picture.hpp"
#include "schedule/simulate.hpp"

namespace shardmark {
namespace {

/// Blocks back to chunks; folds, ties and communication are left out, but for a lane's part of a deferred decision.
std::vector<Action> fold_section(Lane const& refined, Section section, std::vector<int> const& run, bool marks_reduction) {
  std::vector<Action> out;
  for (Action action : refined[section]) {
    switch (action.what) {
      case Do::post:
        if (postings_of(refined, action.token).front().group == decision_group) out.push_back({.what = Do::reduce});
        continue;
      case Do::fold:
      case Do::wait:
      case Do::tie:
      case Do::release:
        continue;
      case Do::decide:
        if (marks_reduction) out.push_back({.what = Do::reduce});
        continue;
      case Do::reduce:
        break;
      case Do::update:
        action.unit = {};
        break;
      default:
        action.chunk = {run[std::size_t(action.chunk.v)]};
    }
    if (out.empty() || out.back() != action) out.push_back(action);
  }
  return out;
}

Schedule fold_blocks(Schedule const& schedule) {
  Schedule coarse = schedule;
  coarse.form = Form::coarse;
  std::vector<int> const run = runs_of(schedule.lane_of_chunk);
  coarse.lane_of_chunk = lanes_of_runs(schedule.lane_of_chunk);
  bool const marks =
      schedule.form == Form::lowered && schedule.reduced_over != 0 && schedule.sum.inside == Inside::micros && !schedule.defers();
  for (Lane& lane : coarse.lanes) {
    for (Section section : sections) lane[section] = fold_section(lane, section, run, marks);
    lane.postings.clear();
  }
  return coarse;
}

using Grid = std::vector<std::vector<std::string>>;

/// One row a lane, one column a slot.
Grid draw(Schedule const& coarse, int windows) {
  Costs const unit{[](Action const&, int) { return 1.0; }, [](Posting const&, Schedule const&) { return 0.0; }};
  std::vector<std::string> const suffixes = chunk_suffixes(coarse.lane_of_chunk);
  Grid rows(coarse.lanes.size());
  for (Span const& span : simulate(coarse, unit, windows).spans) {
    auto& row = rows[std::size_t(span.lane)];
    row.resize(std::size_t(std::lround(span.begin)), ".");
    std::string label(1, letter(span.action.what));
    if (span.action.micro.valid()) label += std::to_string(span.action.micro.v);
    if (span.action.chunk.valid()) label += suffixes[std::size_t(span.action.chunk.v)];
    row.push_back(std::move(label));
  }
  return rows;
}

/// Lanes side by side, `shown` slots at a time.
void print_panels(std::string& text, Grid const& rows, std::size_t slots, std::size_t shown, std::size_t cell) {
  std::size_t const number = std::to_string(rows.size() - 1).size();
  auto const out = std::back_inserter(text);
  for (std::size_t first = 0; first < slots; first += shown) {
    if (first > 0) fmt::format_to(out, "from slot {}:\n", first);
    for (std::size_t lane = 0; lane < rows.size(); ++lane) {
      fmt::format_to(out, "stage {:>{}} |", lane, number);
      for (std::size_t slot = first; slot < std::min(first + shown, rows[lane].size()); ++slot) {
        fmt::format_to(out, "{:>{}}", rows[lane][slot], cell);
      }
      text += '\n';
    }
  }
}

}  // namespace

std::string render(Schedule const& schedule, int columns) {
  bool const folded = schedule.form != Form::coarse;
  int const windows = schedule.synchronous() ? 1 : 2;
  Grid const rows = draw(folded ? fold_blocks(schedule) : schedule, windows);
  std::size_t cell = 2, slots = 0;
  for (auto const& row : rows) {
    slots = std::max(slots, row.size());
    for (auto const& label : row) cell = std::max(cell, label.size() + 1);
  }
  std::size_t const margin = fmt::formatted_size("stage {} |", rows.size() - 1);
  std::size_t const room = columns > int(margin) ? (std::size_t(columns) - margin) / cell : 0;

  std::string text;
  std::size_t const panels = (slots + std::max<std::size_t>(room, 1) - 1) / std::max<std::size_t>(room, 1);
  print_panels(text, rows, slots, (slots + panels - 1) / panels, cell);  // of equal width
  if (folded) text += "(blocks joined to chunks; communication not shown)\n";
  if (!schedule.synchronous()) fmt::format_to(std::back_inserter(text), "(prologue, {} repetitions of the body, epilogue)\n", windows);
  return text;
}

}  // namespace shardmark
