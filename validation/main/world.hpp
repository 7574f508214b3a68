#pragma once
// What a test under mpirun may use. Tests never name a global communicator.

#include "comm/communicator.hpp"
#include "comm/fabric.hpp"

namespace shardmark::testing {

/// The ranks of this program: a group of its own for each test, so that no test sees what another left behind. Valid inside a test.
Communicator& world();

/// For tests of other transports between the same processes.
MpiSession& session();

}  // namespace shardmark::testing
