#pragma once
// A schedule with its body repeated: what the checker and the simulator walk. Internal to core/schedule.

#include <span>
#include <string>
#include <vector>

#include "schedule/check.hpp"

namespace shardmark {

/// One action of an unrolled lane; its ids are shifted.
struct Step {
  Action action;
  Section section = Section::body;
  int index = 0;    // in the section
  int windows = 0;  // repetitions of the body before this run of the section
};

class Unrolled {
 public:
  /// Prologue, `windows` bodies, epilogue of every lane.
  Unrolled(Schedule const& schedule, int windows);
  Schedule const& schedule() const { return *schedule_; }
  std::vector<Step> const& lane(int lane) const { return lanes_[std::size_t(lane)]; }
  int lanes() const { return int(lanes_.size()); }
  int chunks() const { return int(schedule_->lane_of_chunk.size()); }
  int lane_of(int chunk) const { return schedule_->lane_of_chunk[std::size_t(chunk)]; }
  /// Micro-batches that enter: those of all bodies, and the prologue's and epilogue's.
  int micros() const { return micros_; }
  /// What a post or wait stands for; empty when no posting has the token. Micro-batches are not shifted: see micro_of().
  std::span<Posting const> postings(int lane, Token token) const;
  MicroId micro_of(Posting const& posting, Step const& step) const;
  int tokens(int lane) const { return int(postings_[std::size_t(lane)].size()); }

 private:
  Schedule const* schedule_;
  std::vector<std::vector<Step>> lanes_;
  std::vector<std::vector<std::span<Posting const>>> postings_;  // [lane][token]
  int micros_ = 0;
};

/// Every id of an action or posting names something that exists, and belongs to its lane.
/// @throws BadSchedule
void require_known_ids(Unrolled const& unrolled);

/// "lane 2, body action 7 of repetition 0, backward chunk 2 micro 3 version 0".
std::string describe(int lane, Step const& step);
/// @throws BadSchedule: describe(): problem
[[noreturn]] void reject(int lane, Step const& step, std::string const& problem);

}  // namespace shardmark
