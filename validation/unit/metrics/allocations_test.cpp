#include "metrics/allocations.hpp"

#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "backend/library_scope.hpp"
#include "data/dataset.hpp"
#include "metrics/trace.hpp"

namespace shardmark {
namespace {

struct alignas(128) Wide {
  char bytes[128];
};

/// Allocations of ours while `work` runs.
template <class Work>
std::uint64_t ours_during(Work&& work) {
  auto const before = allocations();
  work();
  return (allocations() - before).ours;
}

TEST(Allocations, EveryFormIsCounted) {
  EXPECT_TRUE(allocations_are_counted());
  std::unique_ptr<int> one;
  std::unique_ptr<int[]> array;
  std::unique_ptr<Wide> wide;
  EXPECT_EQ(ours_during([&] { one = std::make_unique<int>(1); }), 1u);
  EXPECT_EQ(ours_during([&] { array = std::make_unique<int[]>(100); }), 1u);
  EXPECT_EQ(ours_during([&] { wide = std::make_unique<Wide>(); }), 1u);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(wide.get()) % 128, 0u);
  EXPECT_EQ(ours_during([&] { one.reset(); }), 0u);
  EXPECT_EQ(ours_during([&] { one.reset(new (std::nothrow) int(2)); }), 1u);
}

TEST(Allocations, LibrariesAreCountedApart) {
  auto const before = allocations();
  std::unique_ptr<int> theirs, ours;
  {
    LibraryScope const outer;
    LibraryScope const inner;
    theirs = std::make_unique<int>(1);
  }
  ours = std::make_unique<int>(2);
  auto const made = allocations() - before;
  EXPECT_EQ(made.in_libraries, 1u);
  EXPECT_EQ(made.ours, 1u);
}

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool malloc_ends_the_program = true;  // when it is asked for too much
#else
constexpr bool malloc_ends_the_program = false;
#endif

TEST(Allocations, TooMuchIsBadAlloc) {
  if (malloc_ends_the_program) GTEST_SKIP() << "a sanitizer's malloc never fails";
  std::size_t const too_much = ~std::size_t{0} / 2;
  EXPECT_THROW(static_cast<void>(::operator new(too_much)), std::bad_alloc);
  EXPECT_THROW(static_cast<void>(::operator new[](too_much, std::align_val_t{64})), std::bad_alloc);
  EXPECT_EQ(::operator new[](too_much, std::nothrow), nullptr);
}

TEST(Allocations, LoadersAllocateNothingOnceBuilt) {
  auto const tokens = make_synthetic_tokens(1, 50, 16, 61, Ragged::yes);
  auto const vectors = make_synthetic_vectors(1, 50, {3, 4}, 5);
  for (Dataset const* data : {tokens.get(), vectors.get()}) {
    for (int depth : {0, 3}) {
      Loader loader(*data, Sampler(50, 8, 1), {.replicas = 3, .replica = 2, .micros = 2}, depth);
      loader.next();  // the thread has started
      EXPECT_EQ(ours_during([&] {
                  for (int i = 0; i < 200; ++i) loader.next();
                }),
                0u);
    }
  }
}

TEST(Allocations, EvaluationsAllocateNothingOnceBuilt) {
  auto const data = make_synthetic_tokens(1, 50, 16, 61, Ragged::no);
  Evaluation evaluation(*data, 4, 3, 1);
  EXPECT_EQ(ours_during([&] {
              for (std::int64_t round = 0; round < evaluation.rounds(); ++round) evaluation.read(round);
            }),
            0u);
}

TEST(Allocations, TracingAllocatesNothing) {
  Trace trace(64);
  EXPECT_EQ(ours_during([&] {
              for (int i = 0; i < 100; ++i) TraceScope const scope(&trace, TracePhase::forward, "step");
            }),
            0u);
}

}  // namespace
}  // namespace shardmark
