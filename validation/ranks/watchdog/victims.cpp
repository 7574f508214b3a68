// Ranks for watchdog.sh: they work in steps and meet in a collective after each; one of them misbehaves as told.
//
//   victims <timeout_seconds> <steps> <misdeed> <rank> <step>
//   misdeed: none | stop (SIGSTOP) | vanish (leaves without a word) | forget (waits for a message that nobody sends) | slow (long work,
//   with beats)

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <array>
#include <chrono>
#include <cstdlib>
#include <thread>

#include "comm/fabric.hpp"
#include "run/watchdog.hpp"

namespace shardmark {
namespace {

struct Misdeed {
  std::string_view what;
  int rank, step;
};

void work(StatusBoard& board, double seconds) {
  auto const end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    board.beat();
  }
}

void misbehave(Misdeed const& misdeed, Communicator& world, StatusBoard& board, Arena& arena, Stream& stream, double timeout_seconds) {
  if (misdeed.what == "stop") raise(SIGSTOP);
  if (misdeed.what == "vanish") std::this_thread::sleep_for(std::chrono::hours(1));
  if (misdeed.what == "slow") work(board, 2.5 * timeout_seconds);
  if (misdeed.what == "forget") {
    board.set(misdeed.step, RankState::waiting, "a message that nobody sends");
    Message const message{Direction::receive, world.rank(), 3, arena.make(DType::f32, {1}, Book::communication, stream)};
    world.post(stream, std::span(&message, 1)).wait(stream);
  }
}

void last_words(char const* state, void* rank) {
  std::string const text = fmt::format("last words of rank {}: {}\n", *static_cast<int*>(rank), state);
  if (write(STDERR_FILENO, text.data(), text.size()) < 0) return;
}

int run(MpiSession& session, double timeout_seconds, int steps, Misdeed const& misdeed) {
  Pages const slab(1 << 16);
  Ledger ledger;
  HostStream stream(0);
  Arena arena({slab.data(), slab.bytes()}, ledger);
  arena.watch(stream);
  auto const world = session.world();
  BoardMemory const memory = BoardMemory::for_processes(*world, arena, stream);
  std::array<char, 256> host{};
  gethostname(host.data(), host.size() - 1);
  StatusBoard board(memory.lines(), session.size(), session.rank(), host.data());
  int rank = session.rank();
  Watchdog const watchdog(board, timeout_seconds, last_words, &rank, 1.0);
  while_waiting([](void* b) { static_cast<StatusBoard*>(b)->beat_waiting(); }, &board);

  for (int step = 0; step < steps && stop_requested() == 0; ++step) {
    board.set(step, RankState::working, fmt::format("forward {}", step));
    if (rank == misdeed.rank && step == misdeed.step) misbehave(misdeed, *world, board, arena, stream, timeout_seconds);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
    board.set(step, RankState::waiting, fmt::format("all_reduce {}", step));
    barrier(*world, arena, stream);
  }
  while_waiting(nullptr, nullptr);
  board.set(steps, RankState::done, "end");
  return 0;
}

}  // namespace
}  // namespace shardmark

int main(int argc, char** argv) {
  shardmark::install_signal_flags();
  shardmark::MpiSession session(argc, argv);
  if (argc != 6) session.end_job(shardmark::Exit::bad_request);
  return shardmark::run(session, std::atof(argv[1]), std::atoi(argv[2]), {argv[3], std::atoi(argv[4]), std::atoi(argv[5])});
}
