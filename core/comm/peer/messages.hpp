#pragma once
// Point-to-point messages of a peer group. The receiver copies straight from the sender's memory where it can reach it, and through small
// staging blocks otherwise. Sends are never buffered: all are rendezvous, as long messages are under MPI.

#include <list>
#include <memory_resource>
#include <vector>

#include "comm/engine.hpp"
#include "comm/peer/board.hpp"

namespace shardmark::peer {

class Messages {
 public:
  Messages(Board board, AddressSpace space, int me, std::pmr::memory_resource* pool);
  void post(Posted& owner, Message const& message);
  /// @throws RankFailure when a message has another size than its receiver expects.
  bool advance();

 private:
  struct Send {
    Posted* owner;
    std::byte const* data;
    std::size_t bytes;
    int peer, channel;
    int slot = -1, block = -1;
    std::size_t staged = 0;
  };
  struct Receive {
    Posted* owner;
    std::byte* data;
    std::size_t bytes;
    int peer, channel;
    MessageSlot* from = nullptr;
    std::size_t done = 0;
  };
  struct Arrival {
    int peer, channel;
    MessageSlot* slot;
  };
  enum class Result : std::uint8_t { blocked, moved, finished };

  void take_slot(Send& send);
  bool stage(Send& send);
  Result advance(Send& send);
  Result advance(Receive& receive);
  void match(Receive& receive);
  bool collect_arrivals();
  MessageSlot& slot(int index) const { return board_.of(me_).slots[std::size_t(index)]; }

  Board board_;
  AddressSpace space_;
  int me_;
  std::pmr::list<Send> sends_;
  std::pmr::list<Receive> receives_;
  std::pmr::list<Arrival> arrivals_;  // announced to us and not yet received, in order for each peer
  std::vector<std::uint64_t> seen_;   // entries read from each peer's ring
  std::vector<int> free_slots_, free_blocks_;
};

}  // namespace shardmark::peer
