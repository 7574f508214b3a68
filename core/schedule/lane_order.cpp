#include <fmt/format.h>

#include "schedule/lane_check.hpp"
#include "schedule/recompute.hpp"

namespace shardmark {

LaneOrder::LaneOrder(Unrolled const& unrolled, LaneContents const& contents, int lane)
    : unrolled_(unrolled),
      contents_(contents),
      lane_(lane),
      lowered_(unrolled.schedule().form == Form::lowered),
      weights_(unrolled.schedule().weights),
      cells_(contents.chunks.size() * std::size_t(unrolled.micros())),
      last_version_(contents.chunks.size(), Version{0}) {}

LaneOrder::Cell& LaneOrder::cell(int chunk, MicroId micro) {
  return cells_[contents_.local[std::size_t(chunk)] * std::size_t(unrolled_.micros()) + std::size_t(micro.v)];
}

void LaneOrder::require(bool good, Step const& step, std::string_view problem) const {
  if (!good) reject(lane_, step, std::string(problem));
}

void LaneOrder::once(Step const& step, Cell& cell, Fact fact, std::string_view problem) const {
  require((cell.facts & fact) == 0, step, problem);
  cell.facts |= fact;
}

void LaneOrder::require_same_version(Step const& step, Cell const& cell) const {
  if (step.action.version == cell.version) return;
  reject(lane_, step, fmt::format("its forward read version {}; a backward must use the same", cell.version.v));
}

void LaneOrder::forward(Step const& step, int latest) {
  int const chunk = step.action.chunk.v;
  int const version = step.action.version.v;
  Cell& here = cell(chunk, step.action.micro);
  once(step, here, forwarded, "this micro-batch was forwarded before");
  if (chunk > 0 && !elsewhere(chunk - 1)) {
    require((cell(chunk - 1, step.action.micro).facts & forwarded) != 0, step, "the chunk before it has not been forwarded");
  } else if (chunk > 0 && lowered_) {
    require((here.facts & activation_here) != 0, step, "its activation has not been received");
  }
  if (version > latest) reject(lane_, step, fmt::format("this version doesn't exist yet; the latest is {}", latest));
  if (weights_ == Weights::latest && version != latest)
    reject(lane_, step, fmt::format("a forward reads the latest version here, {}", latest));
  Version& before = last_version_[contents_.local[std::size_t(chunk)]];
  require(before <= step.action.version, step, "an earlier forward of this chunk read a newer version");
  here.version = before = step.action.version;
  keep(here, step.action.keeps);
  before_ = step.action;
}

/// What a forward or recomputation leaves in place of what was there.
void LaneOrder::keep(Cell& cell, Kept kept) const {
  cell.facts &= std::uint16_t(~(input_kept | stash_whole | stash_selective));
  if (kept == Kept::stash) cell.facts |= stash_whole;
  if (kept == Kept::selective) cell.facts |= stash_selective;
  if (kept == Kept::input) cell.facts |= input_kept;
}

void LaneOrder::recompute(Step const& step) {
  Cell& here = cell(step.action.chunk.v, step.action.micro);
  require((here.facts & forwarded) != 0, step, "it has not been forwarded");
  require((here.facts & input_done) == 0, step, "its backward has passed");
  require_same_version(step, here);
  bool const handed = hands_on(before_, step.action);
  before_ = step.action;
  if (step.action.keeps == Kept::selective) return complete(step, here);
  require((here.facts & (stash_whole | stash_selective)) == 0, step, "its stash is there already");
  require(handed || (here.facts & input_kept) != 0, step, "nothing has kept its input");
  require(!handed || (here.facts & input_kept) == 0, step, "it is given an input, and has kept one");
  keep(here, step.action.keeps);
}

void LaneOrder::complete(Step const& step, Cell& cell) const {
  require((cell.facts & stash_selective) != 0, step, "it has no selective stash");
  keep(cell, Kept::stash);
}

void LaneOrder::backward_input(Step const& step) {
  int const chunk = step.action.chunk.v;
  Cell& here = cell(chunk, step.action.micro);
  require((here.facts & forwarded) != 0, step, "it has not been forwarded");
  once(step, here, input_done, "this micro-batch had its backward before");
  require((here.facts & stash_whole) != 0, step, "its stash is not there, or not whole: a recomputation is missing");
  require_same_version(step, here);
  before_ = step.action;
  if (chunk + 1 == unrolled_.chunks()) return;
  if (!elsewhere(chunk + 1)) {
    require((cell(chunk + 1, step.action.micro).facts & input_done) != 0, step, "the chunk behind it has not had its backward");
  } else if (lowered_) {
    require((here.facts & gradient_here) != 0, step, "its gradient has not been received");
  }
}

void LaneOrder::backward_weight(Step const& step) {
  Cell& here = cell(step.action.chunk.v, step.action.micro);
  require((here.facts & input_done) != 0, step, "its backward_input has not been done");
  once(step, here, weight_done, "its weight gradients were made before");
  require_same_version(step, here);
  before_ = step.action;
}

void LaneOrder::message_posted(Step const& step, Posting const& posting) {
  MicroId const micro = unrolled_.micro_of(posting, step);
  int const edge = posting.edge.v;
  if (posting.transfer == Transfer::send) {
    Cell& source = cell(posting.gradient ? edge : edge - 1, micro);
    require((source.facts & (posting.gradient ? input_done : forwarded)) != 0, step, "what it sends has not been made");
    once(step, source, posting.gradient ? gradient_sent : activation_sent, "it was sent before");
  } else {
    Cell& target = cell(posting.gradient ? edge - 1 : edge, micro);
    once(step, target, posting.gradient ? gradient_posted : activation_posted, "it was received before");
  }
}

void LaneOrder::message_complete(Step const& step, Posting const& posting) {
  if (posting.transfer == Transfer::send) return;
  Cell& target = cell(posting.gradient ? posting.edge.v - 1 : posting.edge.v, unrolled_.micro_of(posting, step));
  target.facts |= posting.gradient ? gradient_here : activation_here;
}

bool LaneOrder::weight_gradients_made(std::size_t local_chunk, MicroId micro) const {
  return (cells_[local_chunk * std::size_t(unrolled_.micros()) + std::size_t(micro.v)].facts & weight_done) != 0;
}

void LaneOrder::finish() const {
  for (int chunk : contents_.chunks) {
    int needed = forwarded | input_done | weight_done;
    if (lowered_ && chunk > 0 && elsewhere(chunk - 1)) needed |= gradient_sent;
    if (lowered_ && chunk + 1 < unrolled_.chunks() && elsewhere(chunk + 1)) needed |= activation_sent;
    for (int micro = 0; micro < unrolled_.micros(); ++micro) {
      Cell const& here = cells_[contents_.local[std::size_t(chunk)] * std::size_t(unrolled_.micros()) + std::size_t(micro)];
      int const missing = needed & ~here.facts;
      if (missing == 0) continue;
      char const* what = (missing & forwarded) != 0     ? "forward"
                         : (missing & input_done) != 0  ? "backward"
                         : (missing & weight_done) != 0 ? "backward_weight"
                                                        : "send";
      throw BadSchedule(fmt::format("lane {}, at its end: the {} of chunk {} micro {} is missing", lane_, what, chunk, micro));
    }
  }
}

}  // namespace shardmark
