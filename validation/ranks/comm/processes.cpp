// Worlds of processes: MPI, MPI with everything cut small, and peer with tensors inside and outside of the shared windows.

#include <fmt/format.h>

#include "comm/fabric.hpp"
#include "validation/main/world.hpp"
#include "validation/ranks/comm/contract.hpp"

namespace shardmark::contract {
namespace {

void run(Communicator& world, std::string const& what, Region slab, std::function<void(Rank&)> const& body) {
  SCOPED_TRACE(fmt::format("{}, rank {} of {}", what, world.rank(), world.size()));
  Rank rank(world, slab);
  body(rank);
}

}  // namespace

void on_each_world(std::function<void(Rank&)> const& body) {
  MpiSession& session = testing::session();
  Pages const own(slab_bytes);
  Region const slab{own.data(), own.bytes()};
  run(*session.world(), "mpi", slab, body);
  run(*session.world({.message_bytes = 64 << 10, .round_bytes = 4 << 10}), "mpi, cut small", slab, body);
  run(*session.peer_world(64 << 10), "peer, tensors outside of the window", slab, body);
  auto const peers = session.peer_world(slab_bytes + (64 << 10));
  run(*peers, "peer, tensors in the window", *peers->symmetric(slab_bytes), body);
}

}  // namespace shardmark::contract
