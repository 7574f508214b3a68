// Worlds of threads: self, and peer at awkward sizes.

#include <fmt/format.h>

#include "comm/fabric.hpp"
#include "validation/ranks/comm/contract.hpp"

namespace shardmark::contract {
namespace {

void run(Communicator& world, std::function<void(Rank&)> const& body) {
  SCOPED_TRACE(fmt::format("{}, rank {} of {}", world.name(), world.rank(), world.size()));
  Pages const slab(slab_bytes);
  Rank rank(world, {slab.data(), slab.bytes()});
  body(rank);
}

}  // namespace

void on_each_world(std::function<void(Rank&)> const& body) {
  run(*make_self(), body);
  for (int ranks : {1, 2, 3, 4, 7, 8}) run_thread_ranks(ranks, [&](Communicator& world) { run(world, body); });
}

void on_each_new_world(std::function<void(Rank&)> const& body) { on_each_world(body); }

}  // namespace shardmark::contract
