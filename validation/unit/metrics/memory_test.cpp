#include "metrics/memory.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <memory>

namespace shardmark {
namespace {

TEST(ProcessMemory, SeesMemoryThatIsTouched) {
  auto const before = read_process_memory();
  ASSERT_TRUE(before.pss) << before.pss.reason();
  std::size_t const bytes = 64 << 20;
  auto const block = std::make_unique<char[]>(bytes);
  std::memset(block.get(), 1, bytes);
  auto const after = read_process_memory();
  EXPECT_GE(*after.pss - *before.pss, std::int64_t(bytes) * 9 / 10);
  EXPECT_GE(*after.rss_peak, *after.rss);
}

TEST(ProcessMemory, PeakKeepsTheLargestLook) {
  PssPeak peak;
  EXPECT_FALSE(peak.peak());
  {
    std::size_t const bytes = 64 << 20;
    auto const block = std::make_unique<char[]>(bytes);
    std::memset(block.get(), 1, bytes);
    peak.look();
  }
  auto const high = *peak.peak();
  peak.look();
  EXPECT_EQ(*peak.peak(), high);
  EXPECT_LT(*read_process_memory().pss, high);
}

TEST(ProcessMemory, WhatCannotBeReadIsMissingWithAReason) {
  auto const memory = read_process_memory("/nowhere");
  EXPECT_FALSE(memory.pss);
  EXPECT_NE(memory.pss.reason().find("/nowhere/self/smaps_rollup"), std::string::npos);
}

}  // namespace
}  // namespace shardmark
