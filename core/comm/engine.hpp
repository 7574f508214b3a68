#pragma once
// What the host transports (peer, mpi) share: one engine per rank that lets everything outstanding advance, on all of the rank's groups. A
// rank that waits on one group must serve the others: its peers may be waiting there.

#include <memory>
#include <memory_resource>
#include <string>
#include <vector>

#include "comm/communicator.hpp"

namespace shardmark {

class Advancing {
 public:
  /// Does a bounded piece of work (about 0.1 ms); true when something moved. Never blocks.
  virtual bool advance() = 0;

 protected:
  ~Advancing() = default;
};

class Engine {
 public:
  void add(Advancing& part) { parts_.push_back(&part); }
  void remove(Advancing& part) { std::erase(parts_, &part); }
  bool advance();
  /// A wait in which nothing moved: spins, then yields, then sleeps, because ranks may outnumber cores.
  void idle();
  void moved() { idle_ = 0; }

 private:
  std::vector<Advancing*> parts_;
  int idle_ = 0;
};

/// A failure that another rank caused; what waits throw after abort().
class GroupAborted : public RankFailure {
 public:
  using RankFailure::RankFailure;
};

class Posted;

/// A communicator whose requests complete by an engine.
class EngineGroup : public Communicator, public Advancing {
 public:
  int rank() const final { return rank_; }
  int size() const final { return size_; }
  void progress() final { engine_->advance(); }
  int outstanding() const final { return outstanding_; }
  EngineGroup(EngineGroup const&) = delete;
  EngineGroup& operator=(EngineGroup const&) = delete;

 protected:
  EngineGroup(std::shared_ptr<Engine> engine, int rank, int size);
  ~EngineGroup() override;
  /// A request of `pieces` pieces of work; from a pool, so that a step after warm-up takes nothing from the heap.
  std::shared_ptr<Posted> begin(int pieces);
  std::pmr::memory_resource* pool() { return &pool_; }
  std::shared_ptr<Engine> const& engine() const { return engine_; }
  /// @throws GroupAborted after abort().
  virtual void throw_if_aborted() = 0;
  /// Unwinding drops a request that isn't complete: ends the group, and returns when no peer touches this rank's buffers any more.
  virtual void abandon() noexcept = 0;

 private:
  friend class Posted;
  std::shared_ptr<Engine> engine_;
  int rank_, size_, outstanding_ = 0;
  std::pmr::unsynchronized_pool_resource pool_;
};

/// One post(): complete when all its pieces are done. Keeps the tensors until then.
class Posted final : public RequestState {
 public:
  Posted(EngineGroup& group, int pieces);
  ~Posted() override;
  void keep(Tensor const& tensor) {
    if (tensor) kept_.push_back(tensor.storage);
  }
  void piece_done();
  bool poll() override;
  void order(Stream& consumer) override;

 private:
  EngineGroup& group_;
  int remaining_;
  std::pmr::vector<Storage> kept_;
};

}  // namespace shardmark
