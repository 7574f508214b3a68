#include <cstring>
#include <limits>

#include "comm/mpi/check.hpp"
#include "comm/mpi/communicator.hpp"

namespace shardmark::mpi {

MpiCommunicator::Call MpiCommunicator::describe(Exchange const& exchange) const {
  PieceCounts const pieces = piece_counts(exchange.what, size(), rank(), exchange.root);
  View const recv = pieces.recv > 0 ? exchange.recv.view : View{};
  View send = exchange.send ? exchange.send.view : recv;
  if (pieces.send == 0) send = {};
  View const& any = recv ? recv : send;
  return {.exchange = exchange,
          .pieces = pieces,
          .send = send.data,
          .recv = recv.data,
          .dtype = any.dtype,
          .elements = any.elements() / (recv ? pieces.recv : pieces.send),
          .in_place = send && recv && overlap(send, recv)};
}

bool MpiCommunicator::vendor_can(Call const& call) const {
  Collective const what = call.exchange.what;
  bool const sums = what == Collective::all_reduce || what == Collective::reduce_scatter;
  if (sums && call.dtype == DType::bf16) return false;
  // The root alone may be in place: all ranks must decide alike, so only what is the same everywhere counts, except where MPI has no way.
  if (what == Collective::reduce_scatter && call.in_place) return false;
  auto const limit = std::int64_t(home_->tuning().message_bytes / width(call.dtype));
  return call.elements * size() <= std::min<std::int64_t>(limit, std::numeric_limits<int>::max());
}

void MpiCommunicator::start_vendor(Call const& call, MPI_Request* request) {
  MPI_Comm const comm = collectives_.get();
  MPI_Datatype const type = datatype(call.dtype);
  int const count = int(call.elements), root = call.exchange.root;
  void const* const send = call.in_place ? MPI_IN_PLACE : call.send;
  switch (call.exchange.what) {
    case Collective::broadcast:
      if (rank() == root && call.send != call.recv && count > 0) std::memcpy(call.recv, call.send, std::size_t(count) * width(call.dtype));
      return check(MPI_Ibcast(call.recv, count, type, root, comm, request));
    case Collective::all_reduce:
      return check(MPI_Iallreduce(send, call.recv, count, type, MPI_SUM, comm, request));
    case Collective::reduce_scatter:
      return check(MPI_Ireduce_scatter_block(send, call.recv, count, type, MPI_SUM, comm, request));
    case Collective::all_gather:
      return check(MPI_Iallgather(send, count, type, call.recv, count, type, comm, request));
    case Collective::all_to_all:
      return check(MPI_Ialltoall(send, count, type, call.recv, count, type, comm, request));
    case Collective::gather:
      return check(MPI_Igather(send, count, type, call.recv, count, type, root, comm, request));
    case Collective::scatter: {
      void* const recv = call.in_place ? MPI_IN_PLACE : call.recv;
      return check(MPI_Iscatter(call.send, count, type, recv, count, type, root, comm, request));
    }
  }
}

void MpiCommunicator::copy_own_piece(Call const& call) {
  if (call.pieces.send == 0 || call.pieces.recv == 0) return;
  std::size_t const bytes = std::size_t(call.elements) * width(call.dtype), here = std::size_t(rank()) * bytes;
  std::byte* const to = call.recv + (call.pieces.recv > 1 ? here : 0);
  std::byte const* const from = call.send + (call.pieces.send > 1 ? here : 0);
  if (to != from && bytes > 0) std::memcpy(to, from, bytes);
}

void MpiCommunicator::start_moves(Call const& call, Transfers& transfers, int tag) {
  int const n = size(), root = call.exchange.root;
  std::size_t const bytes = std::size_t(call.elements) * width(call.dtype), chunk = home_->tuning().message_bytes;
  auto receive = [&](int from, int piece) {
    if (from != rank()) transfers.receive(call.recv + std::size_t(piece) * bytes, bytes, from, tag, collectives_.get(), chunk);
  };
  auto send = [&](int to, int piece) {
    if (to != rank()) transfers.send(call.send + std::size_t(piece) * bytes, bytes, to, tag, collectives_.get(), chunk);
  };
  auto others = [&](auto&& each) {
    for (int step = 1; step < n; ++step) each((rank() + step) % n);
  };
  bool const is_root = rank() == root;
  switch (call.exchange.what) {
    case Collective::broadcast:
      if (!is_root) receive(root, 0);
      if (is_root) others([&](int peer) { send(peer, 0); });
      return;
    case Collective::all_gather:
      others([&](int peer) { receive(peer, peer); });
      others([&](int peer) { send(peer, 0); });
      return;
    case Collective::all_to_all:
      others([&](int peer) { receive(peer, peer); });
      others([&](int peer) { send(peer, peer); });
      return;
    case Collective::gather:
      if (is_root) others([&](int peer) { receive(peer, peer); });
      if (!is_root) send(root, 0);
      return;
    case Collective::scatter:
      if (!is_root) receive(root, 0);
      if (is_root) others([&](int peer) { send(peer, peer); });
      return;
    case Collective::all_reduce:
    case Collective::reduce_scatter:
      break;
  }
  invariant(false, "sums go through rounds");
}

}  // namespace shardmark::mpi
