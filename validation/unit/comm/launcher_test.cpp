#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <string>
#include <vector>

#include "comm/fabric.hpp"

namespace shardmark {
namespace {

/// Launcher variables of this process are taken away, and those given set, for the time of a test.
class Environment {
 public:
  explicit Environment(std::map<std::string, std::string> const& given) {
    for (char const* name : {"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMIX_NAMESPACE", "PMI_RANK", "PMI_SIZE", "PMI_FD", "PMI_PORT",
                             "SLURM_NTASKS", "SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_STEP_ID", "SLURM_JOB_ID"}) {
      if (char const* value = std::getenv(name)) saved_[name] = value;
      unsetenv(name);
      names_.push_back(name);
    }
    for (auto const& [name, value] : given) setenv(name.c_str(), value.c_str(), 1);
  }
  ~Environment() {
    for (auto const& name : names_) unsetenv(name.c_str());
    for (auto const& [name, value] : saved_) setenv(name.c_str(), value.c_str(), 1);
  }
  Environment(Environment const&) = delete;

 private:
  std::vector<std::string> names_;
  std::map<std::string, std::string> saved_;
};

std::string refusal(int launcher, int world) {
  try {
    require_matching_launcher(launcher, world);
  } catch (BadRequest const& error) {
    return error.what();
  }
  return "";
}

TEST(Launcher, case_108_a_step_of_four_without_a_way_for_mpi_to_find_them_is_refused) {
  Environment const environment({{"SLURM_NTASKS", "4"}, {"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_PROCID", "2"}});
  EXPECT_TRUE(launched_by_mpi());
  EXPECT_EQ(launcher_ranks(), 4);
  EXPECT_EQ(ranks_before_start(), 1);
  std::string const text = refusal(launcher_ranks(), ranks_before_start());
  EXPECT_NE(text.find("4 ranks"), std::string::npos) << text;
  EXPECT_NE(text.find("MPI sees 1"), std::string::npos) << text;
  EXPECT_EQ(text.find('\n'), std::string::npos) << text;
}

TEST(Launcher, case_108_a_session_refuses_before_mpi_starts) {
  Environment const environment(
      {{"SLURM_NTASKS", "4"}, {"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_PROCID", "2"}, {"SLURM_JOB_ID", "7"}, {"SLURM_STEP_ID", "0"}});
  int argc = 0;
  char** argv = nullptr;
  EXPECT_THROW(MpiSession(argc, argv), Error);
}

TEST(Launcher, case_108_a_batch_script_without_srun_raises_no_false_alarm) {
  Environment const environment({{"SLURM_NTASKS", "4"}, {"SLURM_PROCID", "0"}, {"SLURM_JOB_ID", "7"}});
  EXPECT_FALSE(launched_by_mpi());
  EXPECT_EQ(launcher_ranks(), 0);
  EXPECT_EQ(refusal(launcher_ranks(), 1), "");
}

TEST(Launcher, mpirun_inside_of_a_slurm_step_knows_better_than_the_step) {
  // The step holds mpirun's daemons, one a node.
  Environment const environment({{"OMPI_COMM_WORLD_SIZE", "8"}, {"SLURM_STEP_NUM_TASKS", "2"}, {"SLURM_NTASKS", "8"}});
  EXPECT_EQ(launcher_ranks(), 8);
  EXPECT_EQ(ranks_before_start(), 0);
  EXPECT_EQ(refusal(8, 8), "");
  EXPECT_NE(refusal(8, 1), "");
}

TEST(Launcher, nothing_is_known_without_a_launcher) {
  Environment const environment({});
  EXPECT_FALSE(launched_by_mpi());
  EXPECT_EQ(launcher_ranks(), 0);
  EXPECT_EQ(refusal(0, 1), "");
}

TEST(Launcher, srun_with_pmi_or_pmix_is_wired_up) {
  for (char const* name : {"PMI_RANK", "PMIX_RANK"}) {
    Environment const environment({{name, "0"}, {"SLURM_STEP_NUM_TASKS", "4"}});
    EXPECT_TRUE(launched_by_mpi());
    EXPECT_EQ(launcher_ranks(), 4);
    EXPECT_EQ(ranks_before_start(), 0);
  }
}

}  // namespace
}  // namespace shardmark
