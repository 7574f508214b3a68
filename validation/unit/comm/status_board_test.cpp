#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <string>
#include <thread>

#include "run/watchdog.hpp"

namespace shardmark {
namespace {

TEST(StatusBoard, shows_every_rank_with_its_last_action) {
  BoardMemory const memory = BoardMemory::for_threads(3);
  StatusBoard first(memory.lines(), 3, 0, "node7"), second(memory.lines(), 3, 1, "node7");
  first.set(4, RankState::working, "forward 2");
  second.set(3, RankState::waiting,
             "a long name of an action that is longer than what a line of the board can hold, which is fewer letters");
  std::string const table = first.table(std::array{0.0, 12.5, 0.0});
  EXPECT_NE(table.find("forward 2"), std::string::npos) << table;
  EXPECT_NE(table.find("waiting"), std::string::npos) << table;
  EXPECT_NE(table.find("12.5"), std::string::npos) << table;
  EXPECT_NE(table.find("elsewhere"), std::string::npos) << table;
  EXPECT_EQ(first.action(1).size(), std::size(StatusLine{}.text) - 1);
}

TEST(StatusBoard, waiting_beats_but_does_not_count_as_work) {
  BoardMemory const memory = BoardMemory::for_threads(1);
  StatusBoard board(memory.lines(), 1, 0, "here");
  board.set(0, RankState::working, "forward");
  auto const work = board.line(0).work.load();
  auto const beats = board.line(0).heartbeat.load();
  board.beat_waiting();
  EXPECT_EQ(board.line(0).work.load(), work);
  board.beat();
  EXPECT_EQ(board.line(0).work.load(), work + 1);
  board.set(0, RankState::waiting, "receive");
  board.beat();
  EXPECT_EQ(board.line(0).work.load(), work + 2);
  EXPECT_EQ(board.line(0).heartbeat.load(), beats + 4);
}

// One writer, one reader: an action is read as a whole, never half of two.
TEST(StatusBoard, an_action_is_never_torn) {
  BoardMemory const memory = BoardMemory::for_threads(1);
  StatusBoard writer(memory.lines(), 1, 0, "here"), reader(memory.lines(), 1, 0, "here");
  std::string const a(60, 'a'), b(60, 'b');
  writer.set(0, RankState::working, a);
  std::jthread const writing([&](std::stop_token stop) {
    while (!stop.stop_requested()) {
      writer.set(0, RankState::working, a);
      writer.set(0, RankState::working, b);
      std::this_thread::yield();
    }
  });
  while (reader.line(0).sequence.load() < 20'000) {
    std::string const seen = reader.action(0);
    ASSERT_TRUE(seen == a || seen == b) << seen;
  }
}

TEST(Watchdog, lets_a_working_and_a_finished_rank_live) {
  BoardMemory const memory = BoardMemory::for_threads(2);
  StatusBoard working(memory.lines(), 2, 0, "here"), finished(memory.lines(), 2, 1, "here");
  finished.set(9, RankState::done, "end");
  Watchdog const watchdog(working, 0.2, nullptr, nullptr);
  for (int i = 0; i < 50; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    working.beat();
  }
}

TEST(WatchdogDeathTest, ends_a_silent_rank_with_code_3_and_its_name) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto const silent = [] {
    BoardMemory const memory = BoardMemory::for_threads(2);
    StatusBoard zero(memory.lines(), 2, 0, "here"), one(memory.lines(), 2, 1, "here");
    one.set(3, RankState::working, "backward 5");
    zero.set(3, RankState::waiting, "receive");
    Watchdog const watchdog(zero, 0.2, nullptr, nullptr);
    for (;;) {
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
      zero.beat();
    }
  };
  EXPECT_EXIT(silent(), ::testing::ExitedWithCode(3), "rank 1 on here is silent.*step 3, last action: backward 5");
}

}  // namespace
}  // namespace shardmark
