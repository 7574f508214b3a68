// Decorators that watch streams: meta, traced, hazards and adversarial. The last two must catch a missing wait.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/decorators/adversarial.hpp"
#include "backend/decorators/hazards.hpp"
#include "backend/decorators/meta.hpp"
#include "backend/decorators/traced.hpp"
#include "validation/unit/backend/op_cases.hpp"

namespace shardmark {
namespace {

/// Vectors of fp64 in an arena on a backend's memory.
class Machine {
 public:
  explicit Machine(Backend& backend)
      : ops(backend), a(backend.stream()), b(backend.stream()), arena(backend.reserve(1 << 16, Place::host), ledger) {
    arena.watch(*a);
    arena.watch(*b);
  }
  Tensor vector(Stream& first_use) { return arena.make(DType::f64, {4}, Book::workspace, first_use); }
  void fill(Stream& stream, Tensor const& to, double value) { ops.run(stream, Fill{to.view, value}); }
  void add(Stream& stream, Tensor const& x, Tensor const& y, Tensor const& out) {
    std::array<View, 2> const in{x.view, y.view};
    ops.run(stream, SumTree{in, out.view});
  }

  Backend& ops;
  std::unique_ptr<Stream> a, b;
  Ledger ledger;
  Arena arena;
};

enum class Waits { all, missing };

/// a makes x, b doubles it, a adds both: right only when each stream waits for the other.
double produce_and_consume(Machine& m, Waits waits) {
  Tensor const x = m.vector(*m.a), y = m.vector(*m.b), z = m.vector(*m.a);
  m.fill(*m.a, x, 0);
  m.fill(*m.a, x, 3);
  if (waits == Waits::all) m.b->wait(m.a->record());
  m.add(*m.b, x, x, y);
  m.a->wait(m.b->record());
  m.add(*m.a, x, y, z);
  m.a->synchronize();
  return z.view.as<double>()[0];
}

/// a reads x, x's memory goes back and is handed to b, which overwrites it. `arena` inserts the wait, `hand` forgets it.
enum class Reuse { arena, hand };
double reuse_memory(Machine& m, Reuse reuse) {
  Tensor x = m.vector(*m.a);
  Tensor const copy = m.vector(*m.a);
  m.fill(*m.a, x, 5);
  m.add(*m.a, x, x, copy);
  View const memory = x.view;
  Tensor y;
  if (reuse == Reuse::arena) {
    x = {};
    y = m.vector(*m.b);
    EXPECT_EQ(y.view.data, memory.data);
  } else {
    y = x;
  }
  m.fill(*m.b, y, -1);
  m.b->synchronize();
  m.a->synchronize();
  return copy.view.as<double>()[0];
}

TEST(Hazards, PassesOrderedWorkAndCatchesAMissingWait) {
  auto const reference = make_reference_backend();
  {
    HazardsBackend hazards(*reference);
    Machine m(hazards);
    EXPECT_EQ(produce_and_consume(m, Waits::all), 9);
    EXPECT_EQ(produce_and_consume(m, Waits::all), 9);
  }
  HazardsBackend hazards(*reference);
  Machine m(hazards);
  try {
    produce_and_consume(m, Waits::missing);
    FAIL() << "a missing wait passed";
  } catch (RankFailure const& failure) {
    EXPECT_THAT(failure.what(), testing::AllOf(testing::HasSubstr("sum_tree"), testing::HasSubstr("fill")));
  }
}

TEST(Hazards, SeesMemoryReuse) {
  auto const reference = make_reference_backend();
  {
    HazardsBackend hazards(*reference);
    Machine m(hazards);
    EXPECT_EQ(reuse_memory(m, Reuse::arena), 10);
  }
  HazardsBackend hazards(*reference);
  Machine m(hazards);
  EXPECT_THROW(reuse_memory(m, Reuse::hand), RankFailure);
}

TEST(Hazards, ReadersNeedNoOrderAndSynchronisedWorkIsForgotten) {
  auto const reference = make_reference_backend();
  HazardsBackend hazards(*reference);
  Machine m(hazards);
  Tensor const x = m.vector(*m.a), y = m.vector(*m.a), z = m.vector(*m.b);
  m.fill(*m.a, x, 1);
  m.b->wait(m.a->record());
  m.add(*m.a, x, x, y);
  m.add(*m.b, x, x, z);
  m.a->synchronize();
  m.b->synchronize();
  EXPECT_EQ(hazards.remembered(), 0u);
  m.fill(*m.a, z, 1);  // the host waited for b, which orders it
}

TEST(Hazards, RemembersNoMoreThanWhatIsLive) {
  auto const reference = make_reference_backend();
  HazardsBackend hazards(*reference);
  Machine m(hazards);
  Tensor const x = m.vector(*m.a), y = m.vector(*m.a);
  for (int step = 0; step < 100; ++step) {
    m.fill(*m.a, x, step);
    m.add(*m.a, x, x, y);
  }
  EXPECT_LE(hazards.remembered(), 4u);
}

TEST(Hazards, ASpinningHostIsAnsweredAndOrdered) {
  auto const reference = make_reference_backend();
  HazardsBackend hazards(*reference);
  Machine m(hazards);
  Tensor const x = m.vector(*m.a);
  m.fill(*m.a, x, 1);
  Event const event = m.a->record();
  EXPECT_FALSE(m.a->done(event));
  EXPECT_TRUE(m.a->done(event));
  m.fill(*m.b, x, 2);
}

TEST(Hazards, TransitiveOrderCounts) {
  auto const reference = make_reference_backend();
  HazardsBackend hazards(*reference);
  Machine m(hazards);
  auto const c = hazards.stream();
  m.arena.watch(*c);
  Tensor const x = m.vector(*m.a);
  m.fill(*m.a, x, 1);
  m.b->wait(m.a->record());
  c->wait(m.b->record());
  hazards.run(*c, Fill{x.view, 2});
  EXPECT_THROW(m.fill(*m.b, x, 3), RankFailure);
}

TEST(Adversarial, GivesRightValuesWhateverTheOrderWhenAllWaitsAreThere) {
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    auto const reference = make_reference_backend();
    auto const backend = make_adversarial_backend(*reference, seed);
    Machine m(*backend);
    ASSERT_EQ(produce_and_consume(m, Waits::all), 9) << seed;
    ASSERT_EQ(reuse_memory(m, Reuse::arena), 10) << seed;
  }
}

TEST(Adversarial, ShowsAMissingWaitAndAnEarlyFree) {
  int wrong_wait = 0, wrong_free = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    auto const reference = make_reference_backend();
    auto const backend = make_adversarial_backend(*reference, seed);
    Machine m(*backend);
    wrong_wait += produce_and_consume(m, Waits::missing) != 9;
    wrong_free += reuse_memory(m, Reuse::hand) != 10;
  }
  // Of two queues with a handful of entries a good part of all orders is wrong.
  EXPECT_GT(wrong_wait, 20);
  EXPECT_GT(wrong_free, 20);
}

TEST(Adversarial, RepeatsWithItsSeed) {
  std::array<std::string, 2> outcomes;
  for (std::string& outcome : outcomes)
    for (std::uint64_t seed = 0; seed < 50; ++seed) {
      auto const reference = make_reference_backend();
      auto const backend = make_adversarial_backend(*reference, seed);
      Machine m(*backend);
      outcome += produce_and_consume(m, Waits::missing) == 9 ? '.' : 'x';
    }
  EXPECT_EQ(outcomes[0], outcomes[1]);
}

TEST(Adversarial, EventsAreNotBornDone) {
  auto const reference = make_reference_backend();
  auto const backend = make_adversarial_backend(*reference, 1);
  Machine m(*backend);
  Tensor const x = m.vector(*m.a);
  EXPECT_TRUE(std::isnan(x.view.as<double>()[0]));  // never written
  m.fill(*m.a, x, 1);
  Event const event = m.a->record();
  int asked = 0;
  while (!m.a->done(event)) ++asked;
  EXPECT_EQ(x.view.as<double>()[0], 1);
  EXPECT_GT(asked, 0);
}

TEST(Meta, CountsWithoutTouching) {
  auto const meta = make_meta_backend();
  Machine m(*meta);
  Tensor const x = m.vector(*m.a), y = m.vector(*m.a);
  m.fill(*m.a, x, 1);
  m.add(*m.a, x, x, y);
  m.add(*m.a, x, y, y);
  EXPECT_EQ(meta->count("sum_tree").calls, 2u);
  EXPECT_EQ(meta->count("sum_tree").flops, 2 * 4);
  EXPECT_EQ(meta->count("fill").bytes, 32);
  EXPECT_EQ(meta->total().calls, 3u);
  std::vector<std::string_view> ran;
  meta->each([&](std::string_view op, OpCount) { ran.push_back(op); });
  EXPECT_THAT(ran, testing::ElementsAre("sum_tree", "fill"));
  EXPECT_THROW(meta->count("sing"), Error);
  EXPECT_THROW(m.add(*m.a, x, x, Tensor{}), Error);  // it validates like any backend
}

TEST(MetaDeathTest, MemoryFaultsWhenTouched) {
  auto const meta = make_meta_backend();
  Region const region = meta->reserve(std::size_t{1} << 40, Place::host);  // a terabyte that needs no memory
  EXPECT_DEATH(region.data[1 << 20] = std::byte{1}, "");
}

TEST(Traced, WritesOneSpanPerOperation) {
  auto const reference = make_reference_backend();
  std::array<OpSpan, 2> room;
  TracedBackend traced(*reference, room);
  Machine m(traced);
  Tensor const x = m.vector(*m.a), y = m.vector(*m.b);
  m.fill(*m.a, x, 1);
  m.add(*m.b, x, x, y);
  m.fill(*m.a, x, 2);
  ASSERT_EQ(traced.spans().size(), 2u);
  EXPECT_EQ(traced.dropped(), 1u);
  EXPECT_EQ(traced.spans()[0].name, "fill");
  EXPECT_EQ(traced.spans()[1].stream, m.b->index());
  EXPECT_EQ(traced.spans()[1].flops, 4);
  EXPECT_EQ(traced.spans()[1].bytes, 3 * 4 * 8);
  EXPECT_LE(traced.spans()[0].begin_seconds, traced.spans()[0].end_seconds);
  EXPECT_LE(traced.spans()[0].end_seconds, traced.spans()[1].begin_seconds);
  traced.restart();
  EXPECT_TRUE(traced.spans().empty());
}

}  // namespace
}  // namespace shardmark
