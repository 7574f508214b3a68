#include "metrics/memory.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

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

TEST(AvailableMemory, IsTheLeastOfTheMachineAndTheGroupsAround) {
  namespace fs = std::filesystem;
  fs::path const root = fs::path(testing::TempDir()) / fmt::format("available_memory.{}", getpid());
  auto const write = [&](fs::path const& file, std::string const& text) {
    fs::create_directories((root / file).parent_path());
    std::ofstream(root / file) << text;
  };
  auto const available = [&] { return *read_available_memory(root / "proc", root / "sys"); };
  write("proc/meminfo", "MemTotal: 9000 kB\nMemAvailable: 8000 kB\n");
  write("proc/self/cgroup", "4:memory:/elsewhere\n0::/job/step\n");
  write("sys/fs/cgroup/job/step/memory.max", "max\n");
  EXPECT_EQ(available(), 8000 * 1024);  // no limit
  write("sys/fs/cgroup/job/memory.max", "5000000\n");
  write("sys/fs/cgroup/job/memory.stat", "anon 1000000\nfile 3000000\n");
  EXPECT_EQ(available(), 4000000);  // the job's limit, though the step has none; page cache isn't counted
  write("sys/fs/cgroup/job/memory.stat", "anon 6000000\n");
  EXPECT_EQ(available(), 0);
  fs::remove_all(root);
  EXPECT_FALSE(read_available_memory(root / "proc", root / "sys"));
}

}  // namespace
}  // namespace shardmark
