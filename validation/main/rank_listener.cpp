#include "validation/main/rank_listener.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <cstdio>
#include <cstdlib>
#include <vector>

namespace shardmark::testing {
namespace {

constexpr std::chrono::seconds patience{5};
constexpr std::size_t slab_bytes = std::size_t(1) << 20;

std::string full_name(::testing::TestInfo const& test) { return fmt::format("{}.{}", test.test_suite_name(), test.name()); }

}  // namespace

Fuse::Fuse(std::chrono::seconds patience, std::string last_words)
    : thread_([this, patience, words = std::move(last_words)] {
        std::unique_lock lock(mutex_);
        if (stopped_.wait_for(lock, patience, [this] { return stop_; })) return;
        std::fprintf(stderr, "%s\n", words.c_str());
        std::fflush(nullptr);
        std::_Exit(1);
      }) {}

Fuse::~Fuse() {
  {
    std::lock_guard lock(mutex_);
    stop_ = true;
  }
  stopped_.notify_all();
  thread_.join();
}

RankListener::RankListener(MpiSession& session)
    : agreement_(session.world()),
      slab_(slab_bytes),
      arena_(Region{.data = slab_.data(), .bytes = slab_.size(), .book = Book::communication}, ledger_),
      stream_(0) {
  arena_.watch(stream_);
}

Communicator& RankListener::world() {
  expect(test_world_ != nullptr, "world() is used outside a test");
  return *test_world_;
}

std::vector<int> RankListener::ranks_where(bool flag) {
  std::vector<double> flags(std::size_t(agreement_->size()));
  double const mine = flag ? 1 : 0;
  all_gather(*agreement_, arena_, stream_, {&mine, 1}, flags);
  std::vector<int> ranks;
  for (int rank = 0; rank < agreement_->size(); ++rank)
    if (flags[std::size_t(rank)] != 0) ranks.push_back(rank);
  return ranks;
}

std::vector<int> RankListener::ranks_that_failed(bool failed, std::string const& about) {
  if (!failed) return ranks_where(false);
  Fuse fuse(patience,
            fmt::format("[rank {}] {} failed here and the other ranks don't come out of it: ending the job", agreement_->rank(), about));
  return ranks_where(true);
}

void RankListener::OnTestStart(::testing::TestInfo const&) {
  test_world_ = agreement_->split(std::vector<int>(std::size_t(agreement_->size()), 0));
}

void RankListener::OnTestPartResult(::testing::TestPartResult const& result) {
  // Rank 0's are printed by GoogleTest itself. At once, since this rank may die of what follows.
  if (!result.failed() || agreement_->rank() == 0) return;
  std::string const text = fmt::format("[rank {}] {}:{}: Failure\n{}\n", agreement_->rank(),
                                       result.file_name() != nullptr ? result.file_name() : "?", result.line_number(), result.message());
  std::fputs(text.c_str(), stderr);
  std::fflush(stderr);
}

void RankListener::OnTestEnd(::testing::TestInfo const& test) {
  if (test_world_->outstanding() != 0) ADD_FAILURE() << test_world_->outstanding() << " requests are outstanding at the end of the test";
  bool const failed = test.result()->Failed();
  std::vector<int> const failing = ranks_that_failed(failed, full_name(test));
  // Listeners run in reverse order at a test's end, so GoogleTest's printer comes after this and prints the joint verdict.
  if (!failing.empty() && !failed && agreement_->rank() == 0)
    ADD_FAILURE() << full_name(test) << " failed on ranks " << fmt::format("{}", fmt::join(failing, ", ")) << " of " << agreement_->size();
  test_world_.reset();
}

}  // namespace shardmark::testing
