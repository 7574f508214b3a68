#pragma once
// Where worlds of ranks come from. Only mpi_world names MPI_COMM_WORLD.

#include <functional>
#include <memory>
#include <string>

#include "backend/backend.hpp"
#include "comm/communicator.hpp"

namespace shardmark {

/// A group of one.
std::unique_ptr<Communicator> make_self();

/// Runs `body(world)` on `ranks` threads that form one peer group, rank 0 on the calling thread. A throwing rank aborts the group; the first failure is
/// rethrown after all threads ended. Sums use SumTree's order.
void run_thread_ranks(int ranks, std::function<void(Communicator& world)> const& body);

struct MpiOptions {
  int expected_ranks = 0;  // what the launcher or the options asked for; 0: not known
};
/// MPI with MPI_THREAD_FUNNELED; constructed means initialised, destroyed means finalised (aborts when an exception unwinds).
class MpiSession {
 public:
  MpiSession(int& argc, char**& argv);
  ~MpiSession();
  MpiSession(MpiSession const&) = delete;
  /// The world as an MPI communicator (vendor collectives, or the fixed tree over point-to-point).
  std::unique_ptr<Communicator> world();
  /// The world over shared windows; @throws BadRequest when the ranks don't share a node or /dev/shm is too small (needed, free).
  std::unique_ptr<Communicator> peer_world(std::size_t window_bytes_per_rank);
  int rank() const;
  int size() const;
  /// Compiled and loaded versions, for --version and records.
  static std::string library_version();
  static std::string header_version();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// True when environment variables say that a launcher started this process as one of several tasks (Open MPI, PMI, PMIx, Slurm).
bool launched_by_mpi();
/// How many ranks the launcher says it started (OMPI_COMM_WORLD_SIZE, PMI_SIZE, SLURM_STEP_NUM_TASKS in a step); 0: not known.
int launcher_ranks();
/// Refuses when launcher and MPI disagree (case 108): one message naming both numbers, exit 2.
void require_matching_launcher(int launcher, int world);

}  // namespace shardmark
