#pragma once
// Pictures of schedules.

#include <span>
#include <string>
#include <vector>

#include "schedule/simulate.hpp"

namespace shardmark {

/// Text picture, one row a lane, one slot an action, every action as long as the others, as in the papers' figures:
///   stage 0 | F0 F1 F2 F3  .  . B3 B2 B1 B0  R  U
/// F forward, B backward or its input half, W weight half, C recomputation, R reduction, U update, a dot for idle time; the number is the
/// micro-batch, a letter behind it the chunk of an interleaved stage. What is wider than `columns` goes on below, "from slot N:".
std::string render(Schedule const& schedule, int columns = 100);

enum class Colours : std::uint8_t { kind, micro };

struct SvgStyle {
  std::string title = {};
  std::vector<int> lane_of_chunk = {};  // the schedule's: chunks of a stage get letters; may be empty
  Form form = Form::coarse;             // the schedule's: otherwise blocks of one chunk are drawn as one
  Colours colours = Colours::kind;
  std::string unit = {};  // of the spans' times, behind the numbers of the time axis
  double scale = 1;       // of those numbers: 1e3 shows seconds as ms
};

/// A picture that stands alone: time axis, legend, a tooltip for each action. `spans`: simulate()'s, or measured ones.
std::string render_svg(std::span<Span const> spans, SvgStyle const& style = {});
/// The same with two strips a lane: as planned and as measured, on one time axis; both begin at 0.
std::string render_svg(std::span<Span const> planned, std::span<Span const> measured, SvgStyle const& style = {});

}  // namespace shardmark
