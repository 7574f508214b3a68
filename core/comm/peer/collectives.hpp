#pragma once
// Collectives of a peer group, in the order of posting. Every rank publishes its buffers; when all have, each does its share in everybody's
// memory (share.hpp). With memory that peers can't reach, the same shares run on staging blocks, round by round.

#include <list>
#include <memory_resource>
#include <vector>

#include "comm/engine.hpp"
#include "comm/peer/board.hpp"
#include "comm/peer/share.hpp"

namespace shardmark::peer {

class Collectives {
 public:
  Collectives(Board board, AddressSpace space, int me, std::pmr::memory_resource* pool);
  /// `owner` null: nobody asks for its end, but in_flight() does.
  void post(Posted* owner, Exchange const& exchange);
  /// @throws RankFailure when members post different collectives.
  bool advance();
  bool in_flight() const { return !queue_.empty() || !draining_.empty(); }

 private:
  struct Job {
    Posted* owner;
    std::uint64_t index;  // among the collectives of this group
    Published mine;
    Buffers buffers;
    bool published = false, started = false;
    bool staged = false;
    std::int64_t at = 0;  // next element
    enum class Phase : std::uint8_t { copy_in, share, copy_out } phase = Phase::copy_in;
  };
  struct Draining {
    Posted* owner;
    std::uint64_t steps;  // complete when all ranks have done so many
  };
  enum class Result : std::uint8_t { blocked, moved, finished };

  bool publish();
  bool all_published(std::uint64_t index) const;
  bool all_did(std::uint64_t steps) const;
  void start(Job& job);
  Result run_direct(Job& job);
  Result run_staged(Job& job);
  void copy_in(Job const& job, Range range);
  void copy_out(Job const& job, Range range);
  void step();
  void finish(Posted* owner);
  std::int64_t staged_elements(Job const& job) const;

  Board board_;
  AddressSpace space_;
  int me_;
  std::pmr::list<Job> queue_;
  std::pmr::list<Draining> draining_;
  std::uint64_t posted_ = 0, steps_ = 0;
  std::vector<Published> all_;    // of the job that runs
  std::vector<Buffers> members_;  // of the job that runs, or of its staging blocks
  std::vector<std::byte const*> inputs_;
};

}  // namespace shardmark::peer
