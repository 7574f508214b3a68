#include "comm/peer/home.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <new>

namespace shardmark::peer {

Board Board::create(std::byte* at, int members) {
  Board const board(at, members);
  for (int r = 0; r < members; ++r) new (&board.of(r)) RankBoard;
  for (int i = 0; i < members * members; ++i) new (board.rings() + i) Ring;
  return board;
}

void Control::create(std::byte* at, int ranks) {
  Control const control(at, ranks);
  new (at) WorldHeader;
  for (int r = 0; r < ranks; ++r) new (&control.inside(r)) InsideFlag;
  Board::create(control.world_board(), ranks);
  control.header().bytes_used.store(first_board(ranks) + Board::bytes(ranks));
}

std::uint32_t Control::free_entry(std::uint32_t members) const {
  auto const used = std::min<std::uint32_t>(header().entries_used.load(), std::uint32_t(header().entries.size()));
  for (std::uint32_t i = 0; i < used; ++i) {
    BoardEntry& entry = header().entries[i];
    std::uint32_t nobody = 0;
    if (entry.members.load() == members && entry.present.compare_exchange_strong(nobody, members)) return i;
  }
  return new_entry(members);
}

std::uint32_t Control::new_entry(std::uint32_t members) const {
  std::size_t const needed = Board::bytes(int(members));
  std::uint32_t const index = header().entries_used.fetch_add(1);
  std::uint64_t const at = header().bytes_used.fetch_add(needed);
  require_input(index < header().entries.size() && at + needed <= bytes(ranks_),
                {"too many groups of ranks for shared memory", fmt::format("{} bytes needed at {} of {}", needed, at, bytes(ranks_)),
                 "use --comm mpi"});
  BoardEntry& entry = header().entries[index];
  entry.offset = at;
  entry.present.store(members);
  entry.members.store(members);
  return index;
}

std::uint32_t Control::make_board(int members) const {
  std::uint32_t const index = free_entry(std::uint32_t(members));
  Board::create(at_ + header().entries[index].offset, members);
  return index;
}

Board Control::board(std::uint32_t entry) const {
  BoardEntry const& e = header().entries[entry];
  return Board(at_ + e.offset, int(e.members.load()));
}

void Control::leave_board(std::uint32_t entry) const { header().entries[entry].present.fetch_sub(1); }

Home::Home(std::shared_ptr<Mapping> memory, Control control, AddressSpace space, int world_rank, Window window,
           std::shared_ptr<Engine> engine)
    : memory_(std::move(memory)), control_(control), space_(space), world_rank_(world_rank), window_(window), engine_(std::move(engine)) {}

std::byte* Home::take_window(std::size_t bytes) {
  constexpr std::size_t page = 4096;
  if (window_.source == Window::Source::any_memory) return extra_.emplace_back(Mapping::anonymous(std::max(page, bytes))).data();
  std::size_t const needed = (bytes + page - 1) / page * page;
  require_input(needed <= window_.bytes - window_used_,
                {"the shared window of this rank is full", fmt::format("{} bytes needed, {} free", needed, window_.bytes - window_used_),
                 "give the ranks a larger window"});
  std::byte* const at = window_.data + window_used_;
  window_used_ += needed;
  return at;
}

std::string Home::abort_reason() const {
  std::string text;
  for (auto const& c : control_.header().reason) {
    char const letter = c.load(std::memory_order_relaxed);
    if (letter == 0) break;
    text += letter;
  }
  return text;
}

void Home::abort(std::string_view reason) noexcept {
  WorldHeader& header = control_.header();
  std::uint32_t expected = WorldHeader::running;
  if (!header.abort.compare_exchange_strong(expected, WorldHeader::writing)) return;  // the first reason stays
  std::size_t const length = std::min(reason.size(), header.reason.size() - 1);
  for (std::size_t i = 0; i < length; ++i) header.reason[i].store(reason[i], std::memory_order_relaxed);
  header.abort.store(WorldHeader::aborted);
}

void Home::quiesce() const noexcept {
  // Pieces of work are short; a peer that was killed or stopped inside is not waited for.
  auto const patience = std::chrono::steady_clock::now() + std::chrono::seconds(2);
  for (int r = 0; r < control_.ranks(); ++r)
    while (r != world_rank_ && control_.inside(r).inside.load() != 0 && std::chrono::steady_clock::now() < patience) sched_yield();
}

}  // namespace shardmark::peer
