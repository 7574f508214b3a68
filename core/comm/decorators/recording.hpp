#pragma once
// Counts what a rank posts. Around another communicator it counts and passes on; alone it is rank r of R in a dry run: everything succeeds,
// no data is read or written, no peer is needed.

#include <cstdint>
#include <map>
#include <memory>
#include <string_view>
#include <tuple>
#include <vector>

#include "comm/communicator.hpp"

namespace shardmark {

/// What one rank has posted on all its groups.
class Traffic {
 public:
  struct Count {
    std::int64_t calls = 0;
    std::int64_t bytes = 0;           // of tensors handed over: the larger of send and recv; of messages: their data
    std::int64_t sent_bytes = 0;      // what this rank must send by the algorithm of least volume (ring or slices; all pieces but its own)
    std::int64_t received_bytes = 0;  // by the same
    bool operator==(Count const&) const = default;
  };
  struct CollectiveKey {
    Collective what;
    std::string_view purpose;
    int members;
    Axes axes = 0;
    auto operator<=>(CollectiveKey const&) const = default;
  };
  /// `peer` is a rank of the world.
  struct MessageKey {
    Direction direction;
    int peer, channel;
    auto operator<=>(MessageKey const&) const = default;
  };
  void add(Communicator const& group, Exchange const& exchange);
  void add(Message const& message, int world_peer);
  void reset();

  std::map<CollectiveKey, Count> const& collectives() const { return collectives_; }
  std::map<MessageKey, Count> const& messages() const { return messages_; }
  /// Sum over purposes and group sizes.
  Count total(Collective what) const;
  Count total(Direction direction) const;

 private:
  std::map<CollectiveKey, Count> collectives_;
  std::map<MessageKey, Count> messages_;
};

/// Bytes that `rank` of `members` must send for a collective whose pieces have `piece_bytes` (all-reduce: the whole): the volume of a ring,
/// or of slices; a broadcast counts as a chain, in which the last rank sends nothing.
std::int64_t least_sent_bytes(Collective what, std::int64_t piece_bytes, int rank, int members, int root);

/// And must receive: all that isn't its own.
std::int64_t least_received_bytes(Collective what, std::int64_t piece_bytes, int rank, int members, int root);

/// `inner` and `traffic` outlive it; so do the groups that it splits into.
std::unique_ptr<Communicator> make_recording(Communicator& inner, Traffic& traffic);
/// Rank `rank` of `ranks`, without peers.
std::unique_ptr<Communicator> make_dry_run(int rank, int ranks, Traffic& traffic);

}  // namespace shardmark
