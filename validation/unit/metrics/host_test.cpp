#include "metrics/host.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>
#include <fstream>

namespace shardmark {
namespace {

namespace fs = std::filesystem;

/// Copies of the files that the kernel would show.
class FakeSystem : public testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "shardmark-host-XXXXXX").native();
    ASSERT_NE(mkdtemp(name.data()), nullptr);
    root_ = name;
  }
  void TearDown() override { fs::remove_all(root_); }
  void write(std::string const& path, std::string const& text) const {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text;
  }
  std::string proc() const { return (root_ / "proc").native(); }
  std::string sys() const { return (root_ / "sys").native(); }
  HostInfo info() const { return read_host_info(proc(), sys()); }

  fs::path root_;
};

TEST_F(FakeSystem, ReadsWhatTheKernelShows) {
  write("proc/cpuinfo",
        "processor\t: 0\nmodel name\t: AMD EPYC 9354\ncpu MHz\t\t: 3650.5\nflags\t\t: fpu hypervisor avx2\n\n"
        "processor\t: 1\nmodel name\t: AMD EPYC 9354\ncpu MHz\t\t: 2400.0\nflags\t\t: fpu\n");
  write("proc/sys/kernel/random/boot_id", "6f1c\n");
  write("sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n");
  write("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never\n");
  HostInfo const host = info();
  EXPECT_EQ(*host.cpu_model, "AMD EPYC 9354");
  EXPECT_EQ(*host.boot_id, "6f1c");
  EXPECT_EQ(*host.governor, "performance");
  EXPECT_EQ(*host.thp, "madvise");
  EXPECT_TRUE(*host.virtualised);
  EXPECT_DOUBLE_EQ(*read_mhz(1, proc()), 2400);
  EXPECT_FALSE(read_mhz(2, proc()));
}

TEST_F(FakeSystem, TheSmallestQuotaAroundTheProcessCounts) {
  write("proc/self/cgroup", "0::/job/step\n");
  write("sys/fs/cgroup/job/step/cpu.max", "max 100000\n");
  EXPECT_FALSE(info().cgroup_cpu_quota);
  write("sys/fs/cgroup/job/cpu.max", "150000 100000\n");
  EXPECT_DOUBLE_EQ(*info().cgroup_cpu_quota, 1.5);
  write("sys/fs/cgroup/job/step/cpu.max", "50000 100000\n");
  EXPECT_DOUBLE_EQ(*info().cgroup_cpu_quota, 0.5);
}

TEST_F(FakeSystem, WhatIsAbsentIsMissingWithItsPath) {
  HostInfo const host = info();
  EXPECT_FALSE(host.governor);
  EXPECT_NE(host.governor.reason().find("scaling_governor"), std::string::npos);
  EXPECT_FALSE(host.cpu_model);
  EXPECT_FALSE(host.virtualised);
  EXPECT_FALSE(host.cgroup_cpu_quota);
}

TEST_F(FakeSystem, StealIsAShareOfAllTicks) {
  write("proc/stat", "cpu  100 0 50 800 10 0 0 40 0 0\ncpu0 1 2 3\n");
  auto const before = read_cpu_ticks(proc());
  ASSERT_TRUE(before) << before.reason();
  EXPECT_EQ(before->total, 1000);
  EXPECT_EQ(before->steal, 40);
  EXPECT_FALSE(steal_percent(before, before));
  write("proc/stat", "cpu  150 0 50 840 10 0 0 50 0 0\n");
  EXPECT_DOUBLE_EQ(*steal_percent(before, read_cpu_ticks(proc())), 10);
}

TEST(Host, DescribesThisMachine) {
  HostInfo const host = read_host_info();
  EXPECT_FALSE(host.hostname.empty());
  EXPECT_FALSE(host.kernel.empty());
  EXPECT_GE(host.threads, host.cores);
  EXPECT_GE(host.cores, 1);
  Binding const binding = read_binding();
  EXPECT_FALSE(binding.cpus.empty());
  EXPECT_FALSE(binding.cores.empty());
  EXPECT_LE(binding.cores.size(), binding.cpus.size());
}

TEST(Host, ProcessorsAreListedAsRanges) {
  EXPECT_EQ(format_cpus({}), "");
  EXPECT_EQ(format_cpus({5}), "5");
  EXPECT_EQ(format_cpus({0, 1, 2, 3, 8}), "0-3,8");
  EXPECT_EQ(format_cpus({0, 2, 4, 5}), "0,2,4-5");
}

}  // namespace
}  // namespace shardmark
