#include "metrics/memory.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>

namespace shardmark {
namespace {

/// Touched pages, given back to the system at the end of life (a heap may keep them).
class Pages {
 public:
  static constexpr std::size_t bytes = 64 << 20;
  Pages() : memory_(mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0)) { std::memset(memory_, 1, bytes); }
  ~Pages() { munmap(memory_, bytes); }
  Pages(Pages const&) = delete;
  Pages& operator=(Pages const&) = delete;

 private:
  void* memory_;
};

TEST(ProcessMemory, SeesMemoryThatIsTouched) {
  auto const before = read_process_memory();
  ASSERT_TRUE(before.pss) << before.pss.reason();
  Pages const pages;
  auto const after = read_process_memory();
  EXPECT_GE(*after.pss - *before.pss, std::int64_t(Pages::bytes) * 9 / 10);
  EXPECT_GE(*after.rss_peak, *after.rss);
}

TEST(ProcessMemory, PeakKeepsTheLargestLook) {
  PssPeak peak;
  EXPECT_FALSE(peak.peak());
  {
    Pages const pages;
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
