#include <fmt/format.h>

#include <algorithm>

#include "schedule/lane_check.hpp"

namespace shardmark {

LaneSums::LaneSums(Unrolled const& unrolled, LaneContents const& contents, int lane)
    : unrolled_(unrolled),
      contents_(contents),
      lane_(lane),
      form_(unrolled.schedule().form),
      reduces_(form_ == Form::lowered && unrolled.schedule().reduced_over != 0),
      every_micro_(reduces_ && unrolled.schedule().sum.inside == Inside::replicas),
      defers_(unrolled.schedule().defers()),
      leaves_per_update_(unrolled.schedule().micros_per_update()),
      folded_(contents.chunks.size() * std::size_t(unrolled.micros())),
      leaves_(contents.chunks.size()),
      posted_(contents.bucket_chunks.size()),
      reduced_(contents.bucket_chunks.size()),
      leaf_reduced_(every_micro_ ? contents.bucket_chunks.size() * std::size_t(unrolled.micros()) : 0),
      versions_(contents.units.size()),
      ties_(contents.units.size()),
      offered_(contents.units.size()),
      exchanges_(contents.units.size()) {}

void LaneSums::require(bool good, Step const& step, std::string_view problem) const {
  if (!good) reject(lane_, step, std::string(problem));
}

int LaneSums::latest(std::size_t local_chunk) const {
  int version = decided_;
  for (std::size_t unit : contents_.units_of[local_chunk]) version = std::min(version, versions_[unit]);
  return version;
}

std::size_t LaneSums::leaf_cell(std::size_t bucket, MicroId micro) const {
  return bucket * std::size_t(unrolled_.micros()) + std::size_t(micro.v);
}

void LaneSums::leaf(Step const& step) {
  std::size_t const chunk = contents_.local[std::size_t(step.action.chunk.v)];
  MicroId const micro = step.action.micro;
  char& folded = folded_[chunk * std::size_t(unrolled_.micros()) + std::size_t(micro.v)];
  require(folded == 0, step, "its leaves were folded before");
  folded = 1;
  int const update = micro.v / leaves_per_update_;
  if (int const next = defers_ ? leaves_[chunk] / leaves_per_update_ : latest(chunk); update != next) {
    reject(lane_, step, fmt::format("its leaves belong to version {}, but the next update makes version {}", update + 1, next + 1));
  }
  if (every_micro_) {
    for (std::size_t bucket : contents_.chunk_buckets[chunk]) {
      require(leaf_reduced_[leaf_cell(bucket, micro)] == 2, step, "its leaves have not been reduced over the replicas");
    }
  }
  ++leaves_[chunk];
}

void LaneSums::mark(Step const& step) {
  require(form_ != Form::lowered, step, "lower() turns marks into postings; this one is left over");
  require(defers_ || marks_ == decided_, step, "this update was reduced before");
  for (std::size_t chunk = 0; chunk < contents_.chunks.size(); ++chunk) {
    if (complete(chunk, marks_)) continue;
    reject(lane_, step, fmt::format("not all gradients of chunk {} are complete", contents_.chunks[chunk]));
  }
  ++marks_;
}

/// All leaves of `update` are in: of no later one either, but where lanes defer.
bool LaneSums::complete(std::size_t local_chunk, int update) const {
  bool const sums = form_ == Form::coarse || !contents_.units_of[local_chunk].empty();
  return !sums || leaves_[local_chunk] >= leaves_per_update_ * (update + 1);
}

std::string LaneSums::first_incomplete(std::vector<std::size_t> const& local_chunks, int update) const {
  for (std::size_t chunk : local_chunks) {
    if (complete(chunk, update)) continue;
    int const have = leaves_[chunk] - leaves_per_update_ * update;
    return fmt::format("chunk {} has folded {} of {} leaves", contents_.chunks[chunk], have, leaves_per_update_);
  }
  return {};
}

/// A tied unit of this lane whose slots have not been added; `only_counted_here`: among those whose first slot is here.
std::string LaneSums::first_untied(int update, bool only_counted_here) const {
  for (std::size_t unit = 0; unit < ties_.size(); ++unit) {
    TiedUnit const* const tied = contents_.tied[unit];
    if (tied == nullptr || ties_[unit] > update || (only_counted_here && tied->lane_of_slot.front() != lane_)) continue;
    return fmt::format("the slots of tied unit {} have not been added", contents_.units[unit].v);
  }
  return {};
}

void LaneSums::reduction_posted(Step const& step, Posting const& posting, LaneOrder const& order) {
  if (posting.group == decision_group) return part_given(step, posting);
  if (!posting.group.empty()) return exchange_posted(step, posting);
  Axes const over = unrolled_.schedule().reduced_over;
  require(over != 0 && posting.axes == over, step, "gradients are not reduced over these axes");
  require(posting.what == sum_of(unrolled_.schedule().sharing), step, "not the sum that its sharing asks for");
  std::size_t const bucket = std::size_t(posting.bucket.v);
  require(posting.bucket.valid() && bucket < posted_.size(), step, "there is no such bucket on this lane");
  bucket_posted(step, bucket, unrolled_.micro_of(posting, step), order);
}

void LaneSums::bucket_posted(Step const& step, std::size_t bucket, MicroId micro, LaneOrder const& order) {
  if (!every_micro_) {
    require(defers_ || posted_[bucket] == decided_, step, "this bucket was reduced in this update before");
    if (auto problem = first_incomplete(contents_.bucket_chunks[bucket], posted_[bucket]); !problem.empty()) reject(lane_, step, problem);
    ++posted_[bucket];
    return;
  }
  require(micro.valid() && micro.v < unrolled_.micros(), step, "a reduction of leaves names their micro-batch");
  char& state = leaf_reduced_[leaf_cell(bucket, micro)];
  require(state == 0, step, "these leaves were reduced before");
  for (std::size_t chunk : contents_.bucket_chunks[bucket]) {
    require(order.weight_gradients_made(chunk, micro), step, "not all leaves of this bucket have been made");
  }
  state = 1;
}

void LaneSums::exchange_posted(Step const& step, Posting const& posting) {
  std::size_t const unit = contents_.place_of(posting.unit);
  require(unit < contents_.units.size() && contents_.tied[unit] != nullptr && contents_.tied[unit]->shared(), step,
          "this lane shares no such tied unit");
  require(posting.group == tied_group(posting.unit), step, "a tied unit is exchanged in its own group");
  require(defers_ || offered_[unit] == decided_, step, "the slots of this unit were exchanged in this update before");
  if (auto problem = first_incomplete(contents_.chunks_of[unit], offered_[unit]); !problem.empty()) reject(lane_, step, problem);
  require_all_reduced(step, offered_[unit]);
  ++offered_[unit];
}

/// This lane's part of a deferred decision: what it counts must be complete.
void LaneSums::part_given(Step const& step, Posting const& posting) {
  require(defers_ && posting.what == Collective::all_reduce, step, "no decision is deferred here");
  for (std::size_t chunk = 0; chunk < contents_.chunks.size(); ++chunk) {
    if (auto problem = first_incomplete({chunk}, given_); !problem.empty()) reject(lane_, step, problem);
  }
  require_all_reduced(step, given_);
  if (auto problem = first_untied(given_, true); !problem.empty()) reject(lane_, step, problem);
  ++given_;
}

void LaneSums::reduction_complete(Step const& step, Posting const& posting) {
  if (posting.group == decision_group) {
    ++taken_;
  } else if (!posting.group.empty()) {
    ++exchanges_[contents_.place_of(posting.unit)];
  } else if (every_micro_) {
    leaf_reduced_[leaf_cell(std::size_t(posting.bucket.v), unrolled_.micro_of(posting, step))] = 2;
  } else {
    ++reduced_[std::size_t(posting.bucket.v)];
  }
}

/// Every bucket of `update` has been waited for, or in an unlowered schedule marked.
void LaneSums::require_all_reduced(Step const& step, int update) const {
  if (form_ != Form::lowered) require(marks_ > update, step, "the gradients of this update have not been reduced");
  if (!reduces_ || every_micro_) return;  // leaf() has seen to every_micro_
  for (std::size_t bucket = 0; bucket < reduced_.size(); ++bucket) {
    if (reduced_[bucket] > update) continue;
    reject(lane_, step, fmt::format("the reduction of bucket {} has not been waited for", bucket));
  }
}

void LaneSums::tie(Step const& step) {
  std::size_t const unit = contents_.place_of(step.action.unit);
  require(unit < contents_.units.size() && contents_.tied[unit] != nullptr, step, "this lane holds no such tied unit");
  require(step.action.version.v == decided_ + 1, step, fmt::format("the next update makes version {}", decided_ + 1));
  require(ties_[unit] == decided_, step, "the slots of this unit were added in this update before");
  if (auto problem = first_incomplete(contents_.chunks_of[unit], decided_); !problem.empty()) reject(lane_, step, problem);
  require_all_reduced(step, decided_);
  bool const exchanges = form_ == Form::lowered && contents_.tied[unit]->shared();
  require(!exchanges || exchanges_[unit] == decided_ + 1, step, "the slots of other lanes have not been fetched");
  ++ties_[unit];
}

void LaneSums::decide(Step const& step) {
  require(form_ != Form::coarse, step, "a coarse schedule has no decisions");
  require(step.action.version.v == decided_ + 1, step, fmt::format("the next update makes version {}", decided_ + 1));
  for (std::size_t unit = 0; unit < versions_.size(); ++unit) {
    if (versions_[unit] != decided_) reject(lane_, step, fmt::format("unit {} missed the update before", contents_.units[unit].v));
  }
  for (std::size_t chunk = 0; chunk < contents_.chunks.size(); ++chunk) {
    if (auto problem = first_incomplete({chunk}, decided_); !problem.empty()) reject(lane_, step, problem);
  }
  require_all_reduced(step, decided_);
  if (auto problem = first_untied(decided_, false); !problem.empty()) reject(lane_, step, problem);
  bool const exchanges = form_ == Form::lowered && defers_;
  require(!exchanges || taken_ == decided_ + 1, step, "the other lanes' parts of this decision have not been fetched");
  ++decided_;
}

void LaneSums::update(Step const& step) {
  int const version = step.action.version.v;
  if (form_ == Form::coarse) {
    require(version == decided_ + 1, step, fmt::format("the next update makes version {}", decided_ + 1));
    require_all_reduced(step, decided_);
    ++decided_;
    return;
  }
  std::size_t const unit = contents_.place_of(step.action.unit);
  require(unit < contents_.units.size(), step, "this lane has no such unit");
  require(version == decided_, step, fmt::format("version {} has been decided on", decided_));
  require(versions_[unit] == version - 1, step, "this unit was updated before");
  versions_[unit] = version;
}

void LaneSums::finish() const {
  auto const end = [&](std::string const& problem) { throw BadSchedule(fmt::format("lane {}, at its end: {}", lane_, problem)); };
  for (std::size_t unit = 0; unit < versions_.size(); ++unit) {
    if (versions_[unit] != decided_) end(fmt::format("unit {} misses the update to version {}", contents_.units[unit].v, decided_));
  }
  if (decided_ * leaves_per_update_ != unrolled_.micros()) {
    end(fmt::format("{} updates of {} micro-batches, but {} micro-batches entered", decided_, leaves_per_update_, unrolled_.micros()));
  }
}

}  // namespace shardmark
