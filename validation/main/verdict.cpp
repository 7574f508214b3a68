#include "validation/main/verdict.hpp"

#include <gtest/gtest.h>

#include <cstdio>

#include "base/error.hpp"

namespace shardmark::testing {

Verdict local_verdict(int code) {
  auto const& all = *::testing::UnitTest::GetInstance();
  return {.passed = code == 0, .tests_run = all.test_to_run_count(), .skipped = all.skipped_test_count()};
}

int exit_code(Verdict verdict) {
  if (!verdict.passed) return 1;
  if (verdict.tests_run == 0) {
    std::printf("FAILED: no test ran (wrong filter, or a program without tests)\n");
    return 1;
  }
  if (verdict.skipped == verdict.tests_run) {
    std::printf("SKIPPED: all %d tests\n", verdict.skipped);
    return int(Exit::no_hardware);
  }
  return 0;
}

}  // namespace shardmark::testing
