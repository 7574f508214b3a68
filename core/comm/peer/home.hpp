#pragma once
// What all peer groups of one rank share: the memory, the abort flag of the job, the window.

#include <atomic>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "comm/engine.hpp"
#include "comm/peer/board.hpp"
#include "comm/shared_file.hpp"

namespace shardmark::peer {

/// The board of a group that a split made. Its memory serves another group of the same size once all members have left.
struct BoardEntry {
  std::atomic<std::uint32_t> members{0};  // 0: no board yet; else it never changes again
  std::atomic<std::uint32_t> present{0};
  std::uint64_t offset = 0;  // in the control memory
};

/// At the start of the control memory of a world; boards of groups follow.
struct alignas(64) WorldHeader {
  enum Abort : std::uint32_t { running, writing, aborted };
  std::atomic<std::uint32_t> abort{running};
  std::atomic<std::uint32_t> entries_used{0};
  std::atomic<std::uint64_t> bytes_used{0};
  std::array<std::atomic<char>, 240> reason{};
  std::array<BoardEntry, 1024> entries;
};
/// Not 0 while a rank may touch the memory of others.
struct alignas(64) InsideFlag {
  std::atomic<std::uint32_t> inside{0};
};

/// The control memory of a world: header, flags, boards.
class Control {
 public:
  /// Room for the world's board and those of 16 splits into groups at a time (a mesh makes 8, and some with names).
  static std::size_t bytes(int ranks) { return first_board(ranks) + 17 * Board::bytes(ranks); }
  /// On zeroed memory, by one rank, before any other looks at it.
  static void create(std::byte* at, int ranks);
  Control(std::byte* at, int ranks) : at_(at), ranks_(ranks) {}
  WorldHeader& header() const { return *reinterpret_cast<WorldHeader*>(at_); }
  InsideFlag& inside(int rank) const { return reinterpret_cast<InsideFlag*>(at_ + sizeof(WorldHeader))[rank]; }
  std::byte* world_board() const { return at_ + first_board(ranks_); }
  /// Makes a board for a new group; its entry's index, for the other members.
  std::uint32_t make_board(int members) const;
  Board board(std::uint32_t entry) const;
  void leave_board(std::uint32_t entry) const;
  int ranks() const { return ranks_; }

 private:
  std::uint32_t free_entry(std::uint32_t members) const;
  std::uint32_t new_entry(std::uint32_t members) const;
  static std::size_t first_board(int ranks) { return sizeof(WorldHeader) + std::size_t(ranks) * sizeof(InsideFlag); }
  std::byte* at_;
  int ranks_;
};

/// Memory of this rank that peers can reach.
struct Window {
  enum class Source : std::uint8_t { any_memory, mapped };  // threads reach any memory
  Source source = Source::any_memory;
  std::byte* data = nullptr;
  std::size_t bytes = 0;
};

class Home {
 public:
  Home(std::shared_ptr<Mapping> memory, Control control, AddressSpace space, int world_rank, Window window, std::shared_ptr<Engine> engine);

  Control const& control() const { return control_; }
  AddressSpace const& space() const { return space_; }
  std::shared_ptr<Engine> const& engine() const { return engine_; }
  std::byte* take_window(std::size_t bytes);

  bool aborted() const { return control_.header().abort.load() == WorldHeader::aborted; }
  std::string abort_reason() const;
  void abort(std::string_view reason) noexcept;
  /// After abort(): returns when no peer touches this rank's memory any more.
  void quiesce() const noexcept;

  /// Held while this rank may touch the memory of others. Either the holder sees the abort, or quiesce() sees the holder.
  class Inside {
   public:
    explicit Inside(Home& home) : flag_(home.control_.inside(home.world_rank_).inside) { flag_.store(1); }
    ~Inside() { flag_.store(0); }
    Inside(Inside const&) = delete;

   private:
    std::atomic<std::uint32_t>& flag_;
  };

 private:
  std::shared_ptr<Mapping> memory_;
  Control control_;
  AddressSpace space_;
  int world_rank_;
  Window window_;
  std::size_t window_used_ = 0;
  std::vector<Mapping> extra_;
  std::shared_ptr<Engine> engine_;
};

}  // namespace shardmark::peer
