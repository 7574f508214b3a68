#include "record/provenance.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>

namespace shardmark::record {
namespace {

/// A variable of the environment while the test runs.
class Variable {
 public:
  Variable(char const* name, char const* value) : name_(name) { setenv(name, value, 1); }
  ~Variable() { unsetenv(name_); }
  Variable(Variable const&) = delete;
  Variable& operator=(Variable const&) = delete;

 private:
  char const* name_;
};

TEST(Provenance, IdsAreRandomUuids) {
  auto const a = new_record_id(), b = new_record_id();
  EXPECT_NE(a, b);
  std::string const hex = "[0-9a-f]";
  EXPECT_THAT(a, testing::MatchesRegex(hex + "{8}-" + hex + "{4}-4" + hex + "{3}-[89ab]" + hex + "{3}-" + hex + "{12}"));
}

TEST(Provenance, TimeIsIso8601) { EXPECT_THAT(utc_now(), testing::MatchesRegex("20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9:]{8}Z")); }

TEST(Provenance, SlurmComesFromTheEnvironment) {
  if (std::getenv("SLURM_JOB_ID") != nullptr) GTEST_SKIP() << "inside a Slurm job";
  EXPECT_FALSE(read_slurm());
  Variable const job("SLURM_JOB_ID", "48211"), task("SLURM_ARRAY_TASK_ID", "3"), nodes("SLURM_JOB_NODELIST", "n[014-015]");
  auto const slurm = read_slurm();
  ASSERT_TRUE(slurm);
  EXPECT_EQ(slurm->job_id, 48211);
  EXPECT_EQ(slurm->array_task, 3);
  EXPECT_EQ(slurm->restarts, 0);
  EXPECT_EQ(slurm->nodelist, "n[014-015]");
}

TEST(Provenance, EnvironmentHasWhatChangesResultsAndNoMore) {
  Variable const threads("OMP_NUM_THREADS", "1"), modules("LOADEDMODULES", "gcc/12:openmpi/4.1"), other("SHARDMARK_SECRET", "x");
  Environment const environment = read_environment();
  std::vector<std::pair<std::string, std::string>> omp;
  for (auto const& variable : environment.variables) {
    EXPECT_NE(variable.first, "SHARDMARK_SECRET");
    if (variable.first == "OMP_NUM_THREADS") omp.push_back(variable);
  }
  EXPECT_EQ(omp, (std::vector<std::pair<std::string, std::string>>{{"OMP_NUM_THREADS", "1"}}));
  EXPECT_EQ(environment.modules, (std::vector<std::string>{"gcc/12", "openmpi/4.1"}));
}

TEST(Provenance, BuildNamesProgramAndSource) {
  Build const build = read_build();
  EXPECT_FALSE(build.version.empty() || build.compiler.empty());
  EXPECT_EQ(build.commit.has_value(), build.source == "git");
  ASSERT_TRUE(build.binary_sha256) << build.binary_sha256.reason();
  EXPECT_EQ(build.binary_sha256->size(), 64u);
}

TEST(Provenance, LauncherIsAValueOrAReason) {
  auto const launcher = read_launcher();
  EXPECT_TRUE(launcher || !launcher.reason().empty());
}

TEST(Provenance, SystemTakesWhatTheHostKnows) {
  HostInfo host;
  host.kernel = "6.1";
  host.cores = 32;
  host.threads = 64;
  host.governor = std::string("performance");
  System const system = describe_system(host);
  EXPECT_EQ(system.kernel, "6.1");
  EXPECT_EQ(system.cores_per_node, 32);
  EXPECT_TRUE(system.smt);
  EXPECT_EQ(*system.governor, "performance");
  EXPECT_FALSE(system.cpu);
}

}  // namespace
}  // namespace shardmark::record
