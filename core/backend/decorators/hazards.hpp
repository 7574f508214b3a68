#pragma once
// Hazards: two operations that touch common memory on different streams, one of them writing, must be ordered by events.
// Vector clocks (Mattern 1989) tell whether they are; timing and luck play no part, so one run finds every hazard in its trace.
// Reuse of memory is seen like any other access: the arena's waits are what orders it.
//
// Streams come from this backend. The host counts as a clock of its own: what it submits after synchronize() is ordered behind
// that stream. done() answers as late as an asynchronous device could: false until the host has synchronised, or asks again with
// nothing submitted in between (it spins, so the answer must come).

#include <array>
#include <vector>

#include "backend/decorators/decorator.hpp"

namespace shardmark {

class HazardStream;

class HazardsBackend final : public Decorator {
 public:
  using Clock = std::array<std::uint64_t, 32>;  // one entry a stream: its operations that are known to be complete

  explicit HazardsBackend(Backend& inner) : Decorator(inner) {}
  /// @throws RankFailure that names both operations when their order isn't fixed.
  void run(Stream& stream, Op const& op) override;
  std::unique_ptr<Stream> stream() override;

  /// Accesses that later operations may still collide with.
  std::size_t remembered() const { return accesses_.size(); }

 private:
  friend class HazardStream;
  struct Access {
    View view;
    bool writes;
    unsigned stream;
    std::uint64_t time;
    std::string_view op;
  };
  void check(Access const& now, Clock const& clock) const;
  void remember(Access const& now);
  void host_has_seen(Clock const& clock);
  HazardStream& own(Stream& stream) const;

  std::vector<HazardStream*> streams_;
  std::vector<Access> accesses_;
  Clock host_{};
  std::uint64_t submissions_ = 0;  // anything that the host asked a stream to do
};

}  // namespace shardmark
