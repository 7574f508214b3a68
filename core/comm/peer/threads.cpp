#include <fmt/format.h>

#include <mutex>
#include <thread>
#include <vector>

#include "comm/fabric.hpp"
#include "comm/peer/communicator.hpp"

namespace shardmark {
namespace {

using namespace peer;

/// A world of ranks in this process.
class ThreadWorld {
 public:
  explicit ThreadWorld(int ranks) : memory_(std::make_shared<Mapping>(Mapping::anonymous(Control::bytes(ranks)))), ranks_(ranks) {
    Control::create(memory_->data(), ranks);
  }
  std::unique_ptr<PeerCommunicator> member(int rank, std::string_view name) const {
    Control const control(memory_->data(), ranks_);
    auto home = std::make_shared<Home>(memory_, control, AddressSpace::everything(), rank, Window{}, std::make_shared<Engine>());
    return std::make_unique<PeerCommunicator>(std::move(home), rank, name);
  }

 private:
  std::shared_ptr<Mapping> memory_;
  int ranks_;
};

/// The failure that explains the others.
class FirstFailure {
 public:
  enum class Kind : std::uint8_t { cause, consequence };
  void note(std::exception_ptr failure, Kind kind) {
    std::lock_guard const lock(mutex_);
    auto& place = kind == Kind::cause ? cause_ : consequence_;
    if (place == nullptr) place = std::move(failure);
  }
  void rethrow() const {
    if (cause_ != nullptr) std::rethrow_exception(cause_);
    if (consequence_ != nullptr) std::rethrow_exception(consequence_);
  }

 private:
  std::mutex mutex_;
  std::exception_ptr cause_, consequence_;
};

void run_rank(ThreadWorld const& threads, int rank, std::function<void(Communicator&)> const& body, FirstFailure& failure) {
  auto const world = threads.member(rank, "peer");
  auto const kind = FirstFailure::Kind::cause;
  try {
    body(*world);
  } catch (GroupAborted const&) {
    failure.note(std::current_exception(), FirstFailure::Kind::consequence);
  } catch (std::exception const& error) {
    failure.note(std::current_exception(), kind);
    world->abort(fmt::format("rank {}: {}", rank, error.what()));
  } catch (...) {
    failure.note(std::current_exception(), kind);
    world->abort(fmt::format("rank {} failed", rank));
  }
}

}  // namespace

std::unique_ptr<Communicator> make_self() { return ThreadWorld(1).member(0, "self"); }

void run_thread_ranks(int ranks, std::function<void(Communicator& world)> const& body) {
  expect(ranks >= 1, "a world has one rank or more");
  ThreadWorld const threads(ranks);
  FirstFailure failure;
  {
    std::vector<std::jthread> others;
    for (int rank = 1; rank < ranks; ++rank) others.emplace_back([&, rank] { run_rank(threads, rank, body, failure); });
    run_rank(threads, 0, body, failure);
  }
  failure.rethrow();
}

}  // namespace shardmark
