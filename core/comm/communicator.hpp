#pragma once
// Communication between the ranks of one group. The same contract test runs on every implementation.
//
// - post() starts, Request::wait() ends; a Request owns what it sends and receives until then.
// - A group of sends and receives is one Request (one NCCL group; receives are posted first under MPI).
// - Counts are 64-bit; implementations chunk. Partial overlap of send and receive is rejected; send == recv means in place.
// - Zero-size pieces enter like any other: all ranks of a collective must post it.
// - Messages between two ranks on one channel arrive in order of posting. Collectives of one group start in one order on all ranks.
// - bf16 sums in fp32.
// - Only the rank's own thread calls (MPI_THREAD_FUNNELED).

#include <cstdint>
#include <exception>
#include <memory>
#include <memory_resource>
#include <optional>
#include <span>
#include <string_view>

#include "base/sums.hpp"
#include "tensor/arena.hpp"

namespace shardmark {

/// State of what was posted; implementations derive.
class RequestState {
 public:
  virtual ~RequestState() = default;
  /// Lets it advance; true when complete. Never blocks. @throws RankFailure after abort().
  virtual bool poll() = 0;
  /// Completes it (MPI: progress to completion; NCCL: stream order) before later work on `consumer`. @throws RankFailure after abort().
  virtual void order(Stream& consumer) = 0;
};

/// A request that isn't waited for ends the program in its destructor, unless an exception is unwinding.
class Request {
 public:
  Request() = default;
  explicit Request(std::shared_ptr<RequestState> state) : state_(std::move(state)) {}
  Request(Request&&) noexcept = default;
  Request& operator=(Request&& other) noexcept;
  ~Request();
  bool outstanding() const { return state_ != nullptr; }
  /// True when complete, or when there is nothing to wait for. Still to be waited for.
  bool test();
  void wait(Stream& consumer);

 private:
  std::shared_ptr<RequestState> state_;
};

/// Streams of messages between two ranks that can be told apart.
inline constexpr int channels = 4096;

enum class Direction : std::uint8_t { send, receive };

/// One point-to-point message. `channel` separates streams of messages between the same two ranks (0 <= channel < channels).
struct Message {
  Direction direction;
  int peer;
  int channel;
  Tensor data;  // contiguous
};

enum class Reduction : std::uint8_t {
  fixed_tree,  // bits independent of message size, buckets and arrival: SumTree over ranks 0..n-1
  vendor       // whatever the library does fastest
};

/// One collective. Contiguous tensors. Sizes in elements, n = size():
///   broadcast       send (root) -> recv, or in place
///   all_reduce      send N -> recv N
///   reduce_scatter  send n x N -> recv N (rank's piece)
///   all_gather      send N -> recv n x N
///   all_to_all      send n x N -> recv n x N
///   gather          send N -> recv n x N on root
///   scatter         send n x N on root -> recv N
/// In place: send and recv are the same memory; where one is n x N and the other N, the small one is this rank's piece of the large
/// one (the root's, for gather and scatter); on all members or on none. Absent tensors: send of broadcast and scatter outside the root (of
/// broadcast also on the root: in place), recv of gather outside the root.
struct Exchange {
  Collective what;
  Tensor send;
  Tensor recv;
  int root = 0;
  Reduction reduction = Reduction::fixed_tree;
  std::string_view purpose = "";  // for ledgers and traces; a string literal
  Axes axes = 0;                  // of the mesh's group on which it is posted; the mesh writes it, 0 elsewhere
};

class Communicator {
 public:
  virtual ~Communicator() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;
  /// Starts a group of messages after the work that `producer` holds now.
  virtual Request post(Stream& producer, std::span<Message const> group) = 0;
  virtual Request post(Stream& producer, Exchange const& exchange) = 0;
  /// Lets everything outstanding advance; called between operations and from Stream::tick.
  virtual void progress() {}
  /// Requests posted here and not complete.
  virtual int outstanding() const = 0;
  /// Ends all waits of all members, also those in other processes: they throw RankFailure with `reason`.
  virtual void abort(std::string_view reason) noexcept = 0;
  /// Members with equal colour form a group, ordered by rank; colours[r] is member r's, < 0: none (nullptr there). Collective: all members
  /// call it with the same colours. Nothing is asked of the peers, so that a dry run can do it too.
  virtual std::unique_ptr<Communicator> split(std::span<int const> colours) = 0;
  /// Memory that peers can address (shared window, NCCL registration). nullopt: this transport has none. Collective.
  virtual std::optional<Region> symmetric(std::size_t bytes) = 0;
  /// "self", "peer", "mpi", ...
  virtual std::string_view name() const = 0;
};

/// What a rank calls while it waits for others: each rank is a thread, and each thread has its own. Proves to a watchdog that the rank
/// lives.
void while_waiting(void (*call)(void*), void* argument);

/// Checks what every implementation must refuse: non-contiguous data, wrong sizes, partial overlap, bad peers and roots.
void validate(Communicator const& group, Exchange const& exchange);
void validate(Communicator const& group, std::span<Message const> messages);

/// Small blocking helpers for start-up and decisions on the host, made of the same collectives (never in the timed path's hot loop).
void barrier(Communicator& group, Arena& arena, Stream& stream);
/// values[i] = the sum over ranks in the fixed tree; non-finite values propagate.
void all_sum(Communicator& group, Arena& arena, Stream& stream, std::span<double> values);
/// Concatenates every rank's values in rank order into `out` (size() x mine.size()).
void all_gather(Communicator& group, Arena& arena, Stream& stream, std::span<double const> mine, std::span<double> out);
/// Every rank's bytes become root's.
void broadcast(Communicator& group, Arena& arena, Stream& stream, std::span<std::byte> bytes, int root);

}  // namespace shardmark
