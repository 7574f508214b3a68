// Tests with known outcomes on some ranks only, for the test of the rank-aware main itself (check.sh chooses among them).

#include <gtest/gtest.h>

#include <cstdio>
#include <vector>

#include "validation/main/world.hpp"

namespace shardmark::testing {
namespace {

/// A group operation that nobody leaves before all have entered.
void meet() {
  std::vector<std::byte> slab(1 << 20);
  Ledger ledger;
  Arena arena(Region{.data = slab.data(), .bytes = slab.size()}, ledger);
  HostStream stream(0);
  arena.watch(stream);
  barrier(world(), arena, stream);
}

TEST(Ranked, Passes) {
  std::printf("ordinary output of rank %d\n", world().rank());
  meet();
}

TEST(Ranked, FailsOnRankOne) { EXPECT_NE(world().rank(), 1) << "expected on rank one"; }

TEST(Ranked, LeavesRankOneBeforeABarrier) {
  ASSERT_NE(world().rank(), 1) << "left before the barrier";
  meet();
}

TEST(Ranked, ThrowsOnRankOne) {
  if (world().rank() == 1) throw RankFailure("thrown on rank one");
}

TEST(Ranked, SkipsOnRankOne) {
  if (world().rank() == 1) GTEST_SKIP();
}

TEST(Ranked, Skips) { GTEST_SKIP() << "everywhere"; }

}  // namespace
}  // namespace shardmark::testing
