// The main of tests that are one process.

#include <gtest/gtest.h>

#include "validation/main/verdict.hpp"

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  bool const listing = GTEST_FLAG_GET(list_tests);
  int const code = RUN_ALL_TESTS();
  return listing ? code : shardmark::testing::exit_code(shardmark::testing::local_verdict(code));
}
