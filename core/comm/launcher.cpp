#include <fmt/format.h>

#include <array>
#include <cstdlib>

#include "comm/fabric.hpp"

namespace shardmark {
namespace {

bool is_set(char const* name) { return std::getenv(name) != nullptr; }

int number(char const* name) {
  char const* text = std::getenv(name);
  return text == nullptr ? 0 : std::atoi(text);
}

/// Through these a launcher tells MPI how to find the other ranks: mpirun of Open MPI, PMIx (Open MPI, Slurm, Flux), PMI 1 and 2 (MPICH,
/// Intel MPI, Slurm, Cray).
bool wired_up() {
  constexpr std::array names{"OMPI_COMM_WORLD_SIZE", "PMIX_RANK", "PMIX_NAMESPACE", "PMI_RANK", "PMI_SIZE", "PMI_FD", "PMI_PORT"};
  for (char const* name : names)
    if (is_set(name)) return true;
  return false;
}

}  // namespace

int launcher_ranks() {
  // mpirun inside a Slurm job starts its daemons as a step of its own: the step's count is the number of daemons, so mpirun's comes first.
  for (char const* name : {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "SLURM_STEP_NUM_TASKS"})
    if (int const ranks = number(name); ranks > 0) return ranks;
  return 0;
}

bool launched_by_mpi() { return wired_up() || number("SLURM_STEP_NUM_TASKS") > 1; }

int ranks_before_start() { return wired_up() ? 0 : 1; }

void require_matching_launcher(int launcher, int world) {
  if (launcher == 0 || world == 0) return;
  require_input(launcher == world, {fmt::format("the launcher started {} ranks, but MPI sees {}", launcher, world),
                                    "the launcher doesn't match the MPI library that this program is linked with",
                                    "use the mpirun of that library, or srun --mpi=pmix (srun --mpi=list shows what there is)"});
}

}  // namespace shardmark
