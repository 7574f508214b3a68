#pragma once
// The memory through which the members of a peer group talk: atomics and offsets, no pointers and no locks, so that the same code serves
// threads and processes, and a rank that dies holds nothing.

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "base/types.hpp"

namespace shardmark::peer {

/// Translates between this rank's pointers and what its peers understand. Threads share all memory: the base is 0 and everything can be
/// reached. Processes map one file at different addresses: offsets are relative to its start.
class AddressSpace {
 public:
  static AddressSpace everything() { return {0, std::numeric_limits<std::uintptr_t>::max()}; }
  static AddressSpace mapped(std::byte* base, std::size_t bytes) { return {reinterpret_cast<std::uintptr_t>(base), bytes}; }
  bool reaches(std::byte const* data, std::size_t bytes) const {
    auto const offset = reinterpret_cast<std::uintptr_t>(data) - base_;
    return bytes == 0 || (offset < bytes_ && bytes <= bytes_ - offset);
  }
  std::uint64_t offset_of(std::byte const* data) const { return reinterpret_cast<std::uintptr_t>(data) - base_; }
  std::byte* at(std::uint64_t offset) const { return reinterpret_cast<std::byte*>(base_ + offset); }

 private:
  AddressSpace(std::uintptr_t base, std::uintptr_t bytes) : base_(base), bytes_(bytes) {}
  std::uintptr_t base_, bytes_;
};

inline constexpr int slots_per_rank = 256;        // messages of one rank in flight; more wait in its own queue
inline constexpr int collectives_in_flight = 64;  // published and not yet read by all
inline constexpr int staging_blocks = 2;          // for messages; and one block each for what a collective sends and receives
inline constexpr std::size_t staging_bytes = std::size_t{64} << 10;

/// A message, from its sender's post until its receiver has the data:
///   reachable memory:    free -> ready -> taken -> free
///   other memory:        free -> announced -> (wanted -> filled) repeated -> taken -> free
/// The sender stages a piece only when the receiver wants it, so a message that nobody receives yet holds no staging block.
enum class SlotState : std::uint32_t { free, ready, announced, wanted, filled, taken };
struct alignas(64) MessageSlot {
  std::atomic<SlotState> state{SlotState::free};
  std::int32_t channel = 0;
  std::uint64_t bytes = 0;        // of the whole message
  std::uint64_t offset = 0;       // of its data (ready) or of the staging block (filled)
  std::uint64_t piece_bytes = 0;  // filled
};

/// Slots that one rank has posted for another, in order. Never full: it has as many places as there are slots.
struct alignas(64) Ring {
  std::atomic<std::uint64_t> posted{0};
  std::array<std::uint16_t, slots_per_rank> slot{};
};

/// A collective as one member posts it.
struct Published {
  std::uint64_t send = 0, recv = 0;  // offsets
  std::int64_t elements = 0;         // of one piece
  std::int32_t root = 0;
  Collective what = Collective::all_reduce;
  DType dtype = DType::f32;
  bool reachable = true;
};

/// What one member writes and the others read.
struct alignas(64) RankBoard {
  std::atomic<std::uint64_t> posted{0};             // collectives published
  alignas(64) std::atomic<std::uint64_t> read{0};   // collectives whose publications this rank has read
  alignas(64) std::atomic<std::uint64_t> steps{0};  // steps of collectives done, counted alike on all ranks
  alignas(64) std::uint32_t child = 0;              // entry of a new group's board, between two barriers
  std::array<Published, collectives_in_flight> published;
  std::array<MessageSlot, slots_per_rank> slots;
};

/// The board of one group of n members at some address: n RankBoards, n x n Rings, staging.
class Board {
 public:
  static std::size_t bytes(int members) {
    auto const n = std::size_t(members);
    return n * sizeof(RankBoard) + n * n * sizeof(Ring) + n * (staging_blocks + 2) * staging_bytes;
  }
  /// Makes a board, once for all members.
  static Board create(std::byte* at, int members);
  Board(std::byte* at, int members) : at_(at), members_(members) {}

  RankBoard& of(int rank) const { return reinterpret_cast<RankBoard*>(at_)[rank]; }
  Ring& ring(int from, int to) const { return rings()[from * members_ + to]; }
  /// Staging of `rank`: blocks [0, staging_blocks) for messages, then one for what a collective sends and one for what it receives.
  std::byte* staging(int rank, int block) const {
    return reinterpret_cast<std::byte*>(rings() + members_ * members_) + std::size_t(rank * (staging_blocks + 2) + block) * staging_bytes;
  }
  int members() const { return members_; }

 private:
  Ring* rings() const { return reinterpret_cast<Ring*>(at_ + std::size_t(members_) * sizeof(RankBoard)); }
  std::byte* at_;
  int members_;
};

}  // namespace shardmark::peer
