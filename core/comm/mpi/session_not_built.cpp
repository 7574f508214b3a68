// The session of a build without MPI: callers need no #ifdef.

#include <cstdlib>

#include "comm/fabric.hpp"

namespace shardmark {

struct MpiSession::State {};

MpiSession::MpiSession(int&, char**&) { throw not_built("MPI", "configure with -DSHARDMARK_MPI=ON"); }
MpiSession::~MpiSession() = default;
std::unique_ptr<Communicator> MpiSession::world(MpiTuning const&) { return nullptr; }
std::unique_ptr<Communicator> MpiSession::peer_world(std::size_t) { return nullptr; }
int MpiSession::rank() const { return 0; }
int MpiSession::size() const { return 1; }
void MpiSession::end_job(Exit code) noexcept { std::_Exit(int(code)); }
std::string MpiSession::library_version() { return "none"; }
std::string MpiSession::header_version() { return "none"; }

}  // namespace shardmark
