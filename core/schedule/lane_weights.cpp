#include <fmt/format.h>

#include "schedule/lane_check.hpp"

namespace shardmark {

LaneWeights::LaneWeights(Unrolled const& unrolled, LaneContents const& contents, int lane)
    : contents_(contents),
      lane_(lane),
      sharing_(unrolled.schedule().form == Form::lowered ? unrolled.schedule().sharing : Sharing::replicated),
      axes_(unrolled.schedule().reduced_over),
      units_(contents.units.size(), sharing_ == Sharing::parameters ? State::in_pieces : State::whole) {}

void LaneWeights::require(bool good, Step const& step, std::string_view problem) const {
  if (!good) reject(lane_, step, std::string(problem));
}

std::size_t LaneWeights::unit_of(Step const& step, UnitId unit) const {
  std::size_t const place = contents_.place_of(unit);
  require(place < units_.size(), step, "this lane has no such unit");
  return place;
}

void LaneWeights::use(Step const& step) const {
  for (std::size_t unit : contents_.units_of[contents_.local[std::size_t(step.action.chunk.v)]]) {
    if (units_[unit] == State::whole) continue;
    reject(lane_, step, fmt::format("the weights of unit {} have not been gathered", contents_.units[unit].v));
  }
}

/// Each rank has updated its piece.
void LaneWeights::update(Step const& step) {
  if (sharing_ == Sharing::replicated) return;
  State& unit = units_[unit_of(step, step.action.unit)];
  bool const good = sharing_ == Sharing::parameters ? unit == State::in_pieces : unit == State::whole;
  require(good, step, "an update needs weights that are neither under way nor gathered for a use");
  unit = State::in_pieces;
}

void LaneWeights::gather_posted(Step const& step, Posting const& posting) {
  require(sharing_ != Sharing::replicated && posting.axes == axes_ && posting.what == gather_of(sharing_), step,
          "weights are not shared in this way");
  State& unit = units_[unit_of(step, posting.unit)];
  require(unit == State::in_pieces, step, "these weights are whole, or gathered already");
  unit = State::coming;
}

void LaneWeights::gather_complete(Posting const& posting) { units_[contents_.place_of(posting.unit)] = State::whole; }

void LaneWeights::release(Step const& step) {
  require(sharing_ == Sharing::parameters, step, "whole weights are this lane's own");
  State& unit = units_[unit_of(step, step.action.unit)];
  require(unit == State::whole, step, "these weights have not been gathered");
  unit = State::in_pieces;
}

void LaneWeights::finish() const {
  State const end = sharing_ == Sharing::parameters ? State::in_pieces : State::whole;
  for (std::size_t unit = 0; unit < units_.size(); ++unit) {
    if (units_[unit] == end) continue;
    throw BadSchedule(fmt::format("lane {}, at its end: the weights of unit {} are not {}", lane_, contents_.units[unit].v,
                                  end == State::whole ? "gathered" : "given back"));
  }
}

}  // namespace shardmark
