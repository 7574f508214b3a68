// What only a world of threads shows.

#include <chrono>
#include <thread>

#include "comm/fabric.hpp"
#include "validation/ranks/comm/contract.hpp"

namespace shardmark::contract {
namespace {

TEST(ThreadRanks, the_cause_is_rethrown_not_its_consequences) {
  auto const failing = [](Communicator& world) {
    Pages const slab(1 << 16);
    Rank r(world, {slab.data(), slab.bytes()});
    if (r.me == 2) throw BadRequest({"rank 2 has no data", "", ""});
    barrier(world, r.arena, r.stream);
  };
  try {
    run_thread_ranks(4, failing);
    ADD_FAILURE() << "no failure";
  } catch (BadRequest const& error) {
    EXPECT_STREQ(error.what(), "rank 2 has no data");
  }
}

// The others may be reading the buffers of a rank that fails: it must not give them back under their hands.
TEST(ThreadRanks, a_rank_that_fails_with_requests_outstanding_ends_the_group_first) {
  for (int repeat = 0; repeat < 20; ++repeat) {
    auto const failing = [](Communicator& world) {
      Pages const slab(std::size_t{8} << 20);
      Rank r(world, {slab.data(), slab.bytes()});
      Tensor const t = r.make(DType::f32, 1 << 20);
      Request request = r.post({Collective::all_reduce, t, t});
      if (r.me == 1) {
        request.test();
        throw RankFailure("rank 1 stumbles");
      }
      request.wait(r.stream);
    };
    EXPECT_THROW(run_thread_ranks(3, failing), RankFailure);
  }
}

TEST(ThreadRanks, different_collectives_fail_by_name) {
  auto const failing = [](Communicator& world) {
    Pages const slab(1 << 16);
    Rank r(world, {slab.data(), slab.bytes()});
    Tensor const t = r.make(DType::f32, 4 + r.me);
    r.run({Collective::all_reduce, t, t});
  };
  try {
    run_thread_ranks(2, failing);
    ADD_FAILURE() << "accepted";
  } catch (RankFailure const& failure) {
    EXPECT_NE(std::string(failure.what()).find("collectives differ"), std::string::npos) << failure.what();
  }
}

using RequestDeathTest = ::testing::Test;

TEST(RequestDeathTest, a_request_that_is_not_waited_for_ends_the_program) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  auto const drop = [] {
    auto const self = make_self();
    Pages const slab(1 << 16);
    Rank r(*self, {slab.data(), slab.bytes()});
    Tensor const t = r.make(DType::f32, 4);
    r.post({Collective::all_reduce, t, t});
  };
  EXPECT_DEATH(drop(), "");
  auto const overwrite = [] {
    auto const self = make_self();
    Pages const slab(1 << 16);
    Rank r(*self, {slab.data(), slab.bytes()});
    Tensor const t = r.make(DType::f32, 4);
    Request request = r.post({Collective::all_reduce, t, t});
    request = Request();
  };
  EXPECT_DEATH(overwrite(), "");
}

TEST(ThreadRanks, waiting_calls_the_hook_of_the_rank) {
  run_thread_ranks(2, [](Communicator& world) {
    Pages const slab(1 << 16);
    Rank r(world, {slab.data(), slab.bytes()});
    int beats = 0;
    while_waiting([](void* count) { ++*static_cast<int*>(count); }, &beats);
    if (r.me == 1) std::this_thread::sleep_for(std::chrono::milliseconds(20));
    barrier(world, r.arena, r.stream);
    while_waiting(nullptr, nullptr);
    if (r.me == 0) {
      EXPECT_GT(beats, 10);
    }
  });
}

}  // namespace
}  // namespace shardmark::contract
