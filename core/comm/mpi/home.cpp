#include "comm/mpi/home.hpp"

#include <algorithm>

#include "comm/mpi/check.hpp"

namespace shardmark::mpi {

Handle Handle::duplicate(MPI_Comm comm) {
  MPI_Comm copy = MPI_COMM_NULL;
  check(MPI_Comm_dup(comm, &copy));
  check(MPI_Comm_set_errhandler(copy, MPI_ERRORS_RETURN));
  return Handle(copy);
}

int Handle::rank() const {
  int value = 0;
  check(MPI_Comm_rank(comm_, &value));
  return value;
}

int Handle::size() const {
  int value = 0;
  check(MPI_Comm_size(comm_, &value));
  return value;
}

Home::Home(MPI_Comm world, MpiTuning const& tuning, std::shared_ptr<Engine> engine)
    : notices_(Handle::duplicate(world)), tuning_(tuning), engine_(std::move(engine)) {
  check(MPI_Irecv(incoming_.data(), int(incoming_.size()), MPI_CHAR, MPI_ANY_SOURCE, 0, notices_.get(), &receive_));
  engine_->add(*this);
}

Home::~Home() {
  engine_->remove(*this);
  if (aborted_) notices_.keep_context();
  if (receive_ == MPI_REQUEST_NULL) return;
  MPI_Cancel(&receive_);
  MPI_Wait(&receive_, MPI_STATUS_IGNORE);
}

void Home::note(Text const& text) {
  if (aborted_) return;  // the first reason stays
  text_ = text;
  text_.back() = 0;
  aborted_ = true;
}

void Home::abort(std::string_view reason) noexcept {
  if (aborted_) return;
  Text text{};
  std::copy_n(reason.data(), std::min(reason.size(), text.size() - 1), text.begin());
  note(text);
  int rank = 0, size = 0;
  MPI_Comm_rank(notices_.get(), &rank);
  MPI_Comm_size(notices_.get(), &size);
  for (int peer = 0; peer < size; ++peer) {
    if (peer == rank) continue;
    MPI_Request sent = MPI_REQUEST_NULL;
    // Small enough to leave at once; nobody waits for it, since the job ends.
    if (MPI_Isend(text_.data(), int(text_.size()), MPI_CHAR, peer, 0, notices_.get(), &sent) == MPI_SUCCESS) MPI_Request_free(&sent);
  }
}

bool Home::advance() {
  if (aborted_ || ++calls_ % 64 != 0) return false;
  int arrived = 0;
  check(MPI_Test(&receive_, &arrived, MPI_STATUS_IGNORE));
  if (arrived != 0) note(incoming_);
  return arrived != 0;
}

}  // namespace shardmark::mpi
