#pragma once
// One verdict over all ranks. GoogleTest knows its own process alone: its main prints PASSED on rank 0 although rank 1 failed, and an
// ASSERT that leaves a test on one rank leaves the others waiting in the next collective.
//
// At the end of each test all ranks tell each other how it went, on a group that tests never see. A rank that failed doesn't
// wait long for the others: when they don't come (they wait for it inside the test), it ends the whole job.

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "comm/fabric.hpp"

namespace shardmark::testing {

/// Ends the process with exit code 1 unless it is stopped in time. Makes no MPI calls.
class Fuse {
 public:
  Fuse(std::chrono::seconds patience, std::string last_words);
  ~Fuse();
  Fuse(Fuse const&) = delete;

 private:
  std::mutex mutex_;
  std::condition_variable stopped_;
  bool stop_ = false;
  std::thread thread_;
};

class RankListener final : public ::testing::EmptyTestEventListener {
 public:
  explicit RankListener(MpiSession& session);
  /// The current test's own group of all ranks.
  Communicator& world();
  /// The ranks on which `flag` is true. Collective.
  std::vector<int> ranks_where(bool flag);
  /// The same for failures: a rank that failed doesn't wait for the others for long.
  std::vector<int> ranks_that_failed(bool failed, std::string const& about);

  void OnTestStart(::testing::TestInfo const& test) override;
  void OnTestPartResult(::testing::TestPartResult const& result) override;
  void OnTestEnd(::testing::TestInfo const& test) override;

 private:
  std::unique_ptr<Communicator> agreement_, test_world_;
  std::vector<std::byte> slab_;
  Ledger ledger_;
  Arena arena_;
  HostStream stream_;
};

}  // namespace shardmark::testing
