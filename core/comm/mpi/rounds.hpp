#pragma once
// Reductions in the fixed tree over point-to-point: all-to-all of slices, local tree, all-gather. It has a ring's volume, and its bits
// depend neither on chunks nor on arrival. Cut into rounds; two rounds are under way at a time, so that one travels while the other is
// summed.

#include <array>
#include <memory>
#include <span>
#include <vector>

#include "comm/engine.hpp"
#include "comm/mpi/transfers.hpp"
#include "comm/slices.hpp"

namespace shardmark::mpi {

/// What goes through rounds: sums, and an all-to-all in place, which needs a second buffer for what arrives.
struct RoundTask {
  Collective what;  // all_reduce, reduce_scatter or all_to_all (in place)
  DType dtype;
  std::int64_t elements;  // of one piece
  std::byte const* send;
  std::byte* recv;
  int tag;  // tag .. tag + 3 are this task's
};
inline constexpr int tags_per_task = 4;

class Rounds {
 public:
  Rounds(MPI_Comm comm, int me, int members, std::size_t round_bytes, std::size_t chunk_bytes, std::pmr::memory_resource* pool);
  bool busy() const { return task_.has_value(); }
  void begin(RoundTask const& task);
  /// True when something moved; the task is complete when busy() is false.
  bool advance();
  void drop() noexcept;
  std::size_t scratch_bytes() const { return 2 * scratch_bytes_; }

 private:
  /// Every second round, in order, alike on all ranks: what others sent of this rank's slice is `exchanging`, the sum on its way to them is
  /// `distributing`.
  struct Lane {
    enum class State : std::uint8_t { idle, exchanging, distributing } state = State::idle;
    std::int64_t round = 0, next = 0;
    std::unique_ptr<std::byte[]> scratch;
    Transfers transfers;
  };
  Range slice(int rank) const;
  Range chunk(int rank, std::int64_t round) const;
  bool advance(Lane& lane);
  void exchange(Lane& lane);
  void combine(Lane& lane);
  void distribute(Lane& lane);
  std::byte* arrived(Lane& lane, int from) const;
  int tag(Lane const& lane, int phase) const { return task_->tag + 2 * int(&lane - lanes_.data()) + phase; }
  /// Where `elements` of piece-relative range begin.
  std::size_t bytes(std::int64_t elements) const { return std::size_t(elements) * width(task_->dtype); }

  MPI_Comm comm_;
  int me_, members_;
  std::size_t scratch_bytes_, chunk_bytes_;
  std::optional<RoundTask> task_;
  std::int64_t limit_ = 0, rounds_ = 0;
  std::array<Lane, 2> lanes_;
  std::vector<std::byte const*> inputs_;
};

}  // namespace shardmark::mpi
