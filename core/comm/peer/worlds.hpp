#pragma once
// Worlds of peers. fabric.hpp has those of threads.

#include <cstddef>
#include <memory>

#include "comm/communicator.hpp"
#include "comm/engine.hpp"

namespace shardmark::peer {

/// The members of `bootstrap`, processes of one node, over a file in /dev/shm; collective. `bootstrap` isn't needed afterwards.
/// @throws BadRequest on all of them when /dev/shm is too small or a process can't open the file.
std::unique_ptr<Communicator> make_process_world(Communicator& bootstrap, std::size_t window_bytes_per_rank,
                                                 std::shared_ptr<Engine> engine);

}  // namespace shardmark::peer
