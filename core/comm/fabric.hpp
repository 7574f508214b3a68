#pragma once
// Where worlds of ranks come from. Only mpi/session.cpp names MPI_COMM_WORLD.

#include <functional>
#include <memory>
#include <string>

#include "backend/backend.hpp"
#include "comm/communicator.hpp"

namespace shardmark {

/// A group of one.
std::unique_ptr<Communicator> make_self();

/// Runs `body(world)` on `ranks` threads that form one peer group, rank 0 on the calling thread. A throwing rank aborts the group; the
/// first failure that isn't a consequence of another is rethrown after all threads ended.
void run_thread_ranks(int ranks, std::function<void(Communicator& world)> const& body);

/// How the MPI communicator cuts what it sends; the bits of sums don't depend on it.
struct MpiTuning {
  std::size_t message_bytes = std::size_t{1} << 30;  // longer messages are chunked: MPI counts in int
  std::size_t round_bytes = std::size_t{1} << 20;    // what a rank receives in one round of a fixed-tree sum
};

/// MPI with MPI_THREAD_FUNNELED; constructed means initialised, destroyed means finalised. While an exception unwinds, the destructor ends
/// the whole job (exit code 3), so that no rank hangs: what main() has to say must be said before, inside the session's life.
class MpiSession {
 public:
  /// @throws BadRequest when the launcher started another number of ranks than MPI sees; not_built without MPI.
  MpiSession(int& argc, char**& argv);
  ~MpiSession();
  MpiSession(MpiSession const&) = delete;
  /// The world as an MPI communicator (vendor collectives, or the fixed tree over point-to-point).
  std::unique_ptr<Communicator> world(MpiTuning const& tuning = {});
  /// The world over shared windows; @throws BadRequest when the ranks don't share a node or /dev/shm is too small (needed, free).
  std::unique_ptr<Communicator> peer_world(std::size_t window_bytes_per_rank);
  int rank() const;
  int size() const;
  /// Ends all ranks of the job with this exit code.
  [[noreturn]] void end_job(Exit code) noexcept;
  /// Compiled and loaded versions, for --version and records.
  static std::string library_version();
  static std::string header_version();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// True when environment variables say that a launcher started this process as a rank of an MPI job or as one of several tasks (Open MPI,
/// PMI, PMIx, Slurm).
bool launched_by_mpi();
/// How many ranks the launcher says it started (OMPI_COMM_WORLD_SIZE, PMI_SIZE, SLURM_STEP_NUM_TASKS in a step); 0: not known. A batch
/// script that runs a program without srun is in no step: its SLURM_NTASKS says nothing about this process.
int launcher_ranks();
/// How many ranks MPI will see, as far as that is certain before it starts: 1 when no launcher offers MPI a way to find other ranks; 0: not
/// known.
int ranks_before_start();
/// Refuses when launcher and MPI disagree (case 108): one message naming both numbers, exit 2. 0: not known, agrees with all.
void require_matching_launcher(int launcher, int world);

}  // namespace shardmark
