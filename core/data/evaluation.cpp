#include <algorithm>

#include "base/error.hpp"
#include "data/batch.hpp"
#include "data/dataset.hpp"

namespace shardmark {

Evaluation::Evaluation(Dataset const& data, std::int64_t rows, int ranks, int rank) : data_(data), rows_(rows), ranks_(ranks), rank_(rank) {
  expect(rows > 0 && ranks > 0 && rank >= 0 && rank < ranks, "an evaluation needs rows, and a rank among the ranks");
  std::int64_t const batches = (data.size() + rows - 1) / rows;
  rounds_ = (batches + ranks - 1) / ranks;
  for (std::int64_t id = 0; id < data.size(); ++id) window_counted_ += data.counted(id);
  ids_.reserve(std::size_t(rows));
  reserve(batch_, data.shape(), rows);
}

HostBatch const& Evaluation::read(std::int64_t round) {
  expect(round >= 0 && round < rounds_, "a round of this evaluation");
  std::int64_t const begin = std::min((round * ranks_ + rank_) * rows_, data_.size());
  std::int64_t const end = std::min(begin + rows_, data_.size());
  ids_.clear();
  for (std::int64_t id = begin; id < end; ++id) ids_.push_back(id);
  fill(batch_, data_, 0, ids_);
  batch_.window_counted = window_counted_;
  return batch_;
}

}  // namespace shardmark
