#include "app/main.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <new>
#include <thread>

#include "app/build_job.hpp"
#include "app/checkpoints.hpp"
#include "app/hooks.hpp"
#include "app/memory_check.hpp"
#include "app/run_end.hpp"
#include "app/version.hpp"
#include "comm/fabric.hpp"
#include "metrics/host.hpp"

namespace shardmark {
namespace {

constexpr auto others_first = std::chrono::seconds(2);

std::string host_name() { return read_host_info().hostname; }

/// This process's rank by the launcher's environment, before MPI starts.
int launcher_rank() {
  for (char const* name : {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK"})
    if (char const* text = std::getenv(name)) return std::atoi(text);
  return 0;
}

/// How many ranks the run will have, known before anything starts; 0: only MPI can tell.
int ranks_to_come(Options const& options) {
  if (options.ranks_as_threads > 0) return options.ranks_as_threads;
  if (!launched_by_mpi()) return 1;
  return launcher_ranks();
}

/// How many of the job's ranks share this machine's memory; 1 where the launcher doesn't say.
int ranks_here(int ranks, Options const& options) {
  if (options.ranks_as_threads > 0) return ranks;
  for (char const* name : {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS"})
    if (char const* text = std::getenv(name)) return std::max(1, std::atoi(text));
  return 1;
}

/// Of a plan: as asked for, else those of a written schedule, else one.
int planned_ranks(Options const& options) {
  if (options.ranks > 0) return options.ranks;
  return options.written ? int(options.written->lanes.size()) : 1;
}

/// Everything that can be refused is refused before a rank starts work.
void refuse_early(Options const& options, Strategy const& strategy) {
  if (launched_by_mpi()) require_matching_launcher(launcher_ranks(), ranks_before_start());
  require_input(options.ranks_as_threads == 0 || launcher_ranks() <= 1,
                {fmt::format("--ranks-as-threads in each of the launcher's {} processes", launcher_ranks()),
                 "these would be independent jobs", "start it without the launcher, or leave the option out"});
  int const ranks = ranks_to_come(options);
  if (ranks == 0) return;
  int const replicas = strategy.mesh(options, ranks).data;
  if (auto refusal = strategy.refuse(options, ranks)) fail_input(*refusal);
  require_fit(options, replicas);
  Job const job =
      build_job(options, strategy, ranks, options.dtype, JobPurpose::training, build_dataset(options, replicas, JobPurpose::training));
  if (options.inject) require_possible(*options.inject, job, options.warmup + options.steps);
  require_checkpoints(options, job);
  if (options.evaluate) build_held_out(options);
  if (!options.dry_run) require_memory(job, ranks_here(ranks, options));
}

/// What was printed must have arrived: a full disk or a closed pipe under stdout is no success.
Exit finish(Exit code) {
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  throw RankFailure(fmt::format("can't write to stdout ({})", std::strerror(errno)));
}

struct Ending {
  StatusBoard& board;
  bool good = false;
  ~Ending() { board.set(-1, good ? RankState::done : RankState::failed, "end"); }
};

Exit run_body(Options const& options, Strategy const& strategy, Communicator& world, StatusBoard& board, Exit (*body)(RankContext const&)) {
  Ending ending{board};
  while_waiting([](void* b) { static_cast<StatusBoard*>(b)->beat_waiting(); }, &board);
  board.set(0, RankState::working, "start");
  try {
    Exit const code = finish(body({options, strategy, world, board}));
    ending.good = true;
    return code;
  } catch (Error const& error) {
    end_run(stop_requested() != 0 ? record::State::cancelled : record::State::failed, error.code());
    throw;
  } catch (std::bad_alloc const&) {
    end_run(record::State::oom, Exit::rank_failed);
    throw RankFailure("out of memory");
  } catch (std::exception const&) {
    end_run(record::State::failed, Exit::rank_failed);
    throw;
  }
}

int run_threads(Options const& options, Strategy const& strategy, Exit (*body)(RankContext const&)) {
  int const ranks = options.ranks_as_threads;
  BoardMemory memory = BoardMemory::for_threads(ranks);
  StatusBoard overview(memory.lines(), ranks, 0, host_name());
  Watchdog watchdog(overview, options.timeout_seconds, end_run_by_watchdog, nullptr);
  Exit code = Exit::good;
  run_thread_ranks(ranks, [&](Communicator& world) {
    StatusBoard board(memory.lines(), ranks, world.rank(), host_name());
    Exit const mine = run_body(options, strategy, world, board, body);
    if (world.rank() == 0) code = mine;
  });
  return int(code);
}

int run_alone(Options const& options, Strategy const& strategy, Exit (*body)(RankContext const&)) {
  BoardMemory memory = BoardMemory::for_threads(1);
  StatusBoard board(memory.lines(), 1, 0, host_name());
  Watchdog watchdog(board, options.timeout_seconds, end_run_by_watchdog, nullptr);
  auto world = make_self();
  return int(run_body(options, strategy, *world, board, body));
}

/// Room for one rig's memory on every rank, so that peers reach each other's tensors.
std::size_t peer_window_bytes(Options const& options, Strategy const& strategy, int ranks) {
  Job const job = build_job(options, strategy, ranks, options.dtype, JobPurpose::training,
                            build_dataset(options, strategy.mesh(options, ranks).data, JobPurpose::training));
  std::size_t most = 0;
  for (int rank = 0; rank < ranks; ++rank) most = std::max(most, dry_run(job, rank).slab_bytes);
  return most;
}

/// One message, and the end of all ranks. Ranks other than 0 let it speak first, since most errors are everybody's.
[[noreturn]] void end_with(MpiSession& session, Error const& error) {
  if (session.rank() != 0) std::this_thread::sleep_for(others_first);
  if (error.code() == Exit::bad_request)
    fmt::print(stderr, "shardmark: {}\n", error.what());
  else
    fmt::print(stderr, "shardmark: rank {}: {}\n", session.rank(), error.what());
  std::fflush(stderr);
  session.end_job(error.code());
}

int run_mpi(Options const& options, Strategy const& strategy, int& argc, char**& argv, Exit (*body)(RankContext const&)) {
  MpiSession session(argc, argv);
  try {
    auto control = session.world();
    auto peer = options.comm == CommKind::peer ? session.peer_world(peer_window_bytes(options, strategy, session.size())) : nullptr;
    Communicator& world = peer ? *peer : *control;
    Pages pages(1 << 20);
    Ledger ledger;
    HostStream stream(0);
    Arena arena({pages.data(), pages.bytes(), Place::host, Book::workspace}, ledger);
    arena.watch(stream);
    BoardMemory memory = BoardMemory::for_processes(*control, arena, stream);
    StatusBoard board(memory.lines(), session.size(), session.rank(), host_name());
    Watchdog watchdog(board, options.timeout_seconds, end_run_by_watchdog, nullptr);
    Exit const code = run_body(options, strategy, world, board, body);
    barrier(*control, arena, stream);
    return int(code);
  } catch (Error const& error) {
    end_with(session, error);
  } catch (std::exception const& error) {
    end_with(session, Error(Exit::rank_failed, error.what()));
  }
}

}  // namespace

int report_before_start(Error const& error) {
  // Every rank comes here with the same error. The launcher ends all as soon as one has failed: rank 0 must have spoken by then.
  if (launcher_rank() != 0) std::this_thread::sleep_for(others_first);
  if (launcher_rank() == 0) fmt::print(stderr, "shardmark: {}\n", error.what());
  return int(error.code());
}

int run_ranks(Options const& options, int& argc, char**& argv, Exit (*body)(RankContext const&), Strategy const& strategy) {
  try {
    refuse_early(options, strategy);
    install_signal_flags();  // from here on there is something to write when a signal comes
    if (options.ranks_as_threads > 0) return run_threads(options, strategy, body);
    if (launched_by_mpi()) return run_mpi(options, strategy, argc, argv, body);
    return run_alone(options, strategy, body);
  } catch (Error const& error) {
    return report_before_start(error);
  } catch (std::exception const& error) {
    return report_before_start(Error(Exit::rank_failed, error.what()));
  }
}

int run_strategy(Strategy const& strategy, int argc, char** argv) {
  try {
    Usage usage;
    usage.program = strategy.name();
    if (!strategy.compares_rules()) usage.left_out = {"rounds"};
    usage.extra = strategy.offers();
    usage.micros = strategy.usual_micros();
    usage.recompute = strategy.usual_recompute();
    ParseResult parsed = parse_options(usage, argc, argv);
    if (!parsed.options) {
      fmt::print("{}", parsed.text);
      return int(finish(Exit::good));
    }
    Options const& options = *parsed.options;
    if (options.command == Command::plan) return int(finish(run_plan(options, strategy, planned_ranks(options))));
    return run_ranks(options, argc, argv,
                     options.dry_run                      ? run_dry
                     : options.command == Command::verify ? run_verify
                                                          : run_bench,
                     strategy);
  } catch (Error const& error) {
    return report_before_start(error);
  } catch (std::exception const& error) {
    return report_before_start(Error(Exit::rank_failed, error.what()));
  }
}

}  // namespace shardmark
