// Tests with known outcomes, for the test of the main itself (check.sh chooses among them).

#include <gtest/gtest.h>

TEST(Plain, Passes) { EXPECT_TRUE(true); }
TEST(Plain, Fails) { EXPECT_EQ(1, 2) << "on purpose"; }
TEST(Plain, Skips) { GTEST_SKIP() << "on purpose"; }
