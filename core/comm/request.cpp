#include <exception>

#include "comm/communicator.hpp"

namespace shardmark {
namespace {

/// Buffers that peers still read or write can't be given back: better no program than a wrong one. While an exception unwinds, the
/// implementation ends the group first.
void require_waited(std::shared_ptr<RequestState> const& state) {
  if (state != nullptr && std::uncaught_exceptions() == 0) std::terminate();
}

}  // namespace

Request& Request::operator=(Request&& other) noexcept {
  if (this != &other) {
    require_waited(state_);
    state_ = std::move(other.state_);
  }
  return *this;
}

Request::~Request() { require_waited(state_); }

bool Request::test() {
  if (state_ == nullptr) return true;
  try {
    return state_->poll();
  } catch (...) {
    state_ = nullptr;  // it failed: there is nothing left to wait for
    throw;
  }
}

void Request::wait(Stream& consumer) {
  auto const state = std::move(state_);
  if (state != nullptr) state->order(consumer);
}

}  // namespace shardmark
