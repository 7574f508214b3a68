#include <fmt/format.h>

#include <algorithm>
#include <exception>

#include "comm/fabric.hpp"
#include "comm/mpi/check.hpp"
#include "comm/mpi/communicator.hpp"
#include "comm/peer/worlds.hpp"

namespace shardmark {

using mpi::check;
using mpi::Handle;

struct MpiSession::State {
  int rank = 0, size = 0;
  int exceptions = std::uncaught_exceptions();
  std::shared_ptr<Engine> engine = std::make_shared<Engine>();
};

MpiSession::MpiSession(int& argc, char**& argv) : state_(std::make_unique<State>()) {
  // Before MPI starts: some libraries end the program with a page of their own when the launcher isn't theirs.
  require_matching_launcher(launcher_ranks(), ranks_before_start());
  int provided = MPI_THREAD_SINGLE;
  check(MPI_Init_thread(&argc, &argv, MPI_THREAD_FUNNELED, &provided));
  check(MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN));
  check(MPI_Comm_rank(MPI_COMM_WORLD, &state_->rank));
  check(MPI_Comm_size(MPI_COMM_WORLD, &state_->size));
  try {
    require_input(provided >= MPI_THREAD_FUNNELED,
                  {"this MPI library has no thread support", "MPI_THREAD_FUNNELED is needed", "use another build"});
    require_matching_launcher(launcher_ranks(), state_->size);
  } catch (BadRequest const&) {
    MPI_Finalize();
    throw;
  }
}

MpiSession::~MpiSession() {
  if (std::uncaught_exceptions() > state_->exceptions) end_job(Exit::rank_failed);
  MPI_Finalize();
}

std::unique_ptr<Communicator> MpiSession::world(MpiTuning const& tuning) {
  auto home = std::make_shared<mpi::Home>(MPI_COMM_WORLD, tuning, state_->engine);
  return std::make_unique<mpi::MpiCommunicator>(std::move(home), Handle::duplicate(MPI_COMM_WORLD));
}

std::unique_ptr<Communicator> MpiSession::peer_world(std::size_t window_bytes_per_rank) {
  MPI_Comm node = MPI_COMM_NULL;
  check(MPI_Comm_split_type(MPI_COMM_WORLD, MPI_COMM_TYPE_SHARED, 0, MPI_INFO_NULL, &node));
  int const here = Handle(node).size();
  // Every node refuses, also one that holds more ranks than another: they all see fewer than the world.
  require_input(here == size(),
                {"shared windows need all ranks on one node", fmt::format("this node has {} of {} ranks", here, size()), "use --comm mpi"});
  auto const bootstrap = world();
  return peer::make_process_world(*bootstrap, window_bytes_per_rank, state_->engine);
}

int MpiSession::rank() const { return state_->rank; }
int MpiSession::size() const { return state_->size; }

void MpiSession::end_job(Exit code) noexcept {
  MPI_Abort(MPI_COMM_WORLD, int(code));
  std::terminate();
}

std::string MpiSession::library_version() {
  char text[MPI_MAX_LIBRARY_VERSION_STRING] = {};
  int length = 0;
  check(MPI_Get_library_version(text, &length));
  std::string_view const all(text, std::size_t(length));
  return std::string(all.substr(0, all.find_first_of("\n\r,")));  // libraries append their build's host and flags
}

std::string MpiSession::header_version() {
#if defined(OMPI_MAJOR_VERSION)
  return fmt::format("Open MPI {}.{}.{}", OMPI_MAJOR_VERSION, OMPI_MINOR_VERSION, OMPI_RELEASE_VERSION);
#elif defined(MPICH_VERSION)
  return fmt::format("MPICH {}", MPICH_VERSION);
#else
  return fmt::format("MPI {}.{}", MPI_VERSION, MPI_SUBVERSION);
#endif
}

}  // namespace shardmark
