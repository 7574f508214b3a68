// Worlds of processes: MPI, MPI with everything cut small, and peer with tensors inside and outside of the shared windows.

#include <fmt/format.h>

#include <memory>
#include <vector>

#include "comm/fabric.hpp"
#include "validation/main/world.hpp"
#include "validation/ranks/comm/contract.hpp"

namespace shardmark::contract {
namespace {

struct World {
  std::string what;
  std::unique_ptr<Communicator> group;
  Region slab;
};

std::vector<World> make_worlds(Region own) {
  MpiSession& session = testing::session();
  std::vector<World> worlds;
  worlds.push_back({"mpi", session.world(), own});
  worlds.push_back({"mpi, cut small", session.world({.message_bytes = 64 << 10, .round_bytes = 4 << 10}), own});
  worlds.push_back({"peer, tensors outside of the window", session.peer_world(64 << 10), own});
  auto peers = session.peer_world(slab_bytes + (64 << 10));
  Region const window = *peers->symmetric(slab_bytes);
  worlds.push_back({"peer, tensors in the window", std::move(peers), window});
  return worlds;
}

/// Worlds last for the whole program, since making them takes longer than most tests; they end before MPI does.
class Fabric : public ::testing::Environment {
 public:
  void SetUp() override {
    own_ = std::make_unique<Pages>(slab_bytes);
    worlds_ = make_worlds(own());
  }
  void TearDown() override { worlds_.clear(); }
  Region own() const { return {own_->data(), own_->bytes()}; }
  std::vector<World> const& worlds() const { return worlds_; }

 private:
  std::unique_ptr<Pages> own_;
  std::vector<World> worlds_;
};

Fabric& fabric() {
  static auto* const environment = new Fabric;  // GoogleTest's from here on
  return *environment;
}
auto const* const registered = ::testing::AddGlobalTestEnvironment(&fabric());

void run(std::vector<World> const& worlds, std::function<void(Rank&)> const& body) {
  for (World const& world : worlds) {
    SCOPED_TRACE(fmt::format("{}, rank {} of {}", world.what, world.group->rank(), world.group->size()));
    Rank rank(*world.group, world.slab);
    body(rank);
  }
}

}  // namespace

void on_each_world(std::function<void(Rank&)> const& body) { run(fabric().worlds(), body); }
void on_each_new_world(std::function<void(Rank&)> const& body) { run(make_worlds(fabric().own()), body); }

}  // namespace shardmark::contract
