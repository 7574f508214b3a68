#pragma once
// Sets of MPI requests, and messages cut into chunks.

#include <mpi.h>

#include <memory_resource>
#include <vector>

#include "base/types.hpp"

namespace shardmark::mpi {

/// Non-blocking operations that are done together.
class Transfers {
 public:
  explicit Transfers(std::pmr::memory_resource* pool) : requests_(pool), expected_(pool), statuses_(pool) {}
  /// Posts `bytes` in chunks of at most `chunk_bytes`; the peer cuts alike. An empty message is one empty chunk.
  void receive(std::byte* to, std::size_t bytes, int peer, int tag, MPI_Comm comm, std::size_t chunk_bytes);
  void send(std::byte const* from, std::size_t bytes, int peer, int tag, MPI_Comm comm, std::size_t chunk_bytes);
  /// Where the request of a collective goes.
  MPI_Request* collective() { return next(not_received); }
  /// @throws RankFailure when a message came with another size than its receiver expects.
  bool done();
  void clear();
  /// After a failure: the job ends, so what can be cancelled is, and nothing is waited for.
  void drop() noexcept;

 private:
  static constexpr int not_received = -1;
  MPI_Request* next(int expected_bytes);

  std::pmr::vector<MPI_Request> requests_;
  std::pmr::vector<int> expected_;
  std::pmr::vector<MPI_Status> statuses_;
};

MPI_Datatype datatype(DType dtype);

}  // namespace shardmark::mpi
