// The main of tests that run under mpirun.

#include <gtest/gtest.h>

#include <cstdio>
#include <cstdlib>

#include "base/error.hpp"
#include "validation/main/rank_listener.hpp"
#include "validation/main/verdict.hpp"
#include "validation/main/world.hpp"

namespace shardmark::testing {
namespace {

struct Current {
  MpiSession* session = nullptr;
  RankListener* listener = nullptr;
};
Current current;

/// shardmark_test() says how many ranks it asked for: a launcher that doesn't match the library starts that many worlds of one.
void require_asked_ranks(int world) {
  char const* asked = std::getenv("SHARDMARK_TEST_RANKS");
  require_matching_launcher(asked != nullptr ? std::atoi(asked) : launcher_ranks(), world);
}

/// GoogleTest's listeners for the time of a run; all ranks but 0 are silent. The listener's groups end before the session does.
class Listening {
 public:
  explicit Listening(MpiSession& session) : listener_(session) {
    auto& listeners = ::testing::UnitTest::GetInstance()->listeners();
    if (session.rank() != 0) {
      delete listeners.Release(listeners.default_result_printer());
      delete listeners.Release(listeners.default_xml_generator());
    }
    listeners.Append(&listener_);
    current = {&session, &listener_};
  }
  ~Listening() {
    ::testing::UnitTest::GetInstance()->listeners().Release(&listener_);
    current = {};
  }
  Listening(Listening const&) = delete;
  RankListener& listener() { return listener_; }

 private:
  RankListener listener_;
};

int run(MpiSession& session) {
  require_asked_ranks(session.size());
  Listening listening(session);
  Verdict verdict = local_verdict(RUN_ALL_TESTS());
  // Failures outside tests (environments, a suite's set-up) are agreed on here. A test that only some ranks skipped counts as run.
  verdict.passed = listening.listener().ranks_that_failed(!verdict.passed, "the test program").empty();
  if (!listening.listener().ranks_where(verdict.skipped != verdict.tests_run).empty()) verdict.skipped = 0;
  return session.rank() == 0 || !verdict.passed ? exit_code(verdict) : 0;
}

}  // namespace

Communicator& world() { return current.listener->world(); }
MpiSession& session() { return *current.session; }

}  // namespace shardmark::testing

int main(int argc, char** argv) {
  ::testing::InitGoogleTest(&argc, argv);
  if (GTEST_FLAG_GET(list_tests)) return RUN_ALL_TESTS();
  shardmark::MpiSession session(argc, argv);
  // Caught here: the session aborts the job when an exception leaves it behind.
  try {
    return shardmark::testing::run(session);
  } catch (shardmark::BadRequest const& error) {  // on all ranks alike
    if (session.rank() == 0) std::fprintf(stderr, "%s\n", error.what());
    return int(error.code());
  } catch (std::exception const& error) {
    std::fprintf(stderr, "[rank %d] %s\n", session.rank(), error.what());
    throw;
  }
}
