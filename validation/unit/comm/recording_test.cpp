#include "comm/decorators/recording.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "backend/backend.hpp"
#include "comm/fabric.hpp"
#include "comm/mesh.hpp"

namespace shardmark {
namespace {

/// Tensors of any size over memory that doesn't exist: a dry run never touches it.
struct Nowhere {
  HostStream stream{0};
  Ledger ledger;
  Arena arena{Region{reinterpret_cast<std::byte*>(std::uintptr_t{1} << 46), std::size_t{1} << 44}, ledger};
  Nowhere() { arena.watch(stream); }
  Tensor make(std::int64_t elements) { return arena.make(DType::f32, {elements}, Book::communication, stream); }
};

TEST(DryRun, case_31_counts_more_elements_than_an_int) {
  Nowhere memory;
  Traffic traffic;
  auto const world = make_dry_run(1, 4, traffic);
  std::int64_t const many = (std::int64_t{1} << 31) + 5;
  Tensor const t = memory.make(many);
  world->post(memory.stream, Exchange{Collective::all_reduce, t, t, 0, Reduction::fixed_tree, "gradients"}).wait(memory.stream);
  Message const message{Direction::send, 3, 2, t};
  world->post(memory.stream, std::span(&message, 1)).wait(memory.stream);
  EXPECT_EQ(traffic.collectives().at({Collective::all_reduce, "gradients", 4}).bytes, 4 * many);
  EXPECT_EQ(traffic.messages().at({Direction::send, 3, 2}).bytes, 4 * many);
}

TEST(DryRun, a_mesh_needs_no_peers_and_messages_are_counted_by_rank_of_the_world) {
  Nowhere memory;
  Traffic traffic;
  auto const world = make_dry_run(5, 8, traffic);  // tensor 1, data 0, pipeline 1 of 2 x 2 x 2
  EXPECT_EQ(world->size(), 8);
  Mesh mesh(*world, {.data = 2, .pipeline = 2, .tensor = 2}, {{"ends", {0, 1}}});
  Communicator& pipeline = mesh.over(axes(Axis::pipeline));
  EXPECT_EQ(pipeline.rank(), 1);
  EXPECT_EQ(pipeline.size(), 2);
  Message const message{Direction::receive, 0, 9, memory.make(10)};
  pipeline.post(memory.stream, std::span(&message, 1)).wait(memory.stream);
  EXPECT_EQ(traffic.messages().at({Direction::receive, 1, 9}), (Traffic::Count{1, 40, 0, 40}));
  EXPECT_EQ(mesh.named("ends").size(), 2);
}

TEST(DryRun, keeps_tensors_and_counts_what_is_outstanding_until_the_wait) {
  Nowhere memory;
  Traffic traffic;
  auto const world = make_dry_run(0, 2, traffic);
  Request request = world->post(memory.stream, Exchange{Collective::all_gather, memory.make(16), memory.make(32)});
  EXPECT_EQ(world->outstanding(), 1);
  EXPECT_EQ(memory.ledger.live(Book::communication), 64 + 128);
  request.wait(memory.stream);
  EXPECT_EQ(world->outstanding(), 0);
  EXPECT_EQ(memory.ledger.live(Book::communication), 0);
}

TEST(DryRun, refuses_what_the_real_ones_refuse) {
  Nowhere memory;
  Traffic traffic;
  auto const world = make_dry_run(0, 2, traffic);
  EXPECT_THROW(world->post(memory.stream, Exchange{Collective::all_gather, memory.make(16), memory.make(33)}), Error);
  EXPECT_TRUE(traffic.collectives().empty());
}

TEST(Traffic, ranks_send_the_volume_of_a_ring) {
  constexpr std::int64_t piece = 1000;
  for (int n : {2, 3, 4, 7}) {
    std::int64_t reduced = 0, broadcast = 0;
    for (int r = 0; r < n; ++r) {
      reduced += least_sent_bytes(Collective::all_reduce, piece, r, n, 0);
      broadcast += least_sent_bytes(Collective::broadcast, piece, r, n, 2 % n);
      EXPECT_EQ(least_sent_bytes(Collective::all_gather, piece, r, n, 0), (n - 1) * piece);
      EXPECT_EQ(least_sent_bytes(Collective::gather, piece, r, n, 0), r == 0 ? 0 : piece);
    }
    EXPECT_EQ(reduced, 2 * (n - 1) * piece);
    EXPECT_EQ(broadcast, (n - 1) * piece);
  }
  EXPECT_EQ(least_sent_bytes(Collective::all_reduce, piece, 0, 1, 0), 0);
}

TEST(Traffic, what_is_sent_is_received) {
  constexpr std::int64_t piece = 1001;
  for (int n : {1, 2, 3, 4, 7})
    for (Collective what : {Collective::broadcast, Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather,
                            Collective::all_to_all, Collective::gather, Collective::scatter}) {
      std::int64_t sent = 0, received = 0;
      for (int r = 0; r < n; ++r) {
        sent += least_sent_bytes(what, piece, r, n, n / 2);
        received += least_received_bytes(what, piece, r, n, n / 2);
      }
      EXPECT_EQ(sent, received) << name(what) << " on " << n;
    }
  EXPECT_EQ(least_received_bytes(Collective::gather, piece, 1, 4, 1), 3 * piece);
  EXPECT_EQ(least_received_bytes(Collective::broadcast, piece, 1, 4, 1), 0);
}

TEST(Recording, passes_on_and_counts_by_purpose) {
  run_thread_ranks(3, [](Communicator& world) {
    Pages const slab(1 << 16);
    Ledger ledger;
    HostStream stream(0);
    Arena arena({slab.data(), slab.bytes()}, ledger);
    arena.watch(stream);
    Traffic traffic;
    auto const counted = make_recording(world, traffic);
    double value = world.rank();
    all_sum(*counted, arena, stream, {&value, 1});
    EXPECT_EQ(value, 3);
    auto const part = counted->split(std::vector<int>{0, 1, 1});
    all_sum(*part, arena, stream, {&value, 1});
    EXPECT_EQ(value, world.rank() == 0 ? 3 : 6);
    EXPECT_EQ(traffic.collectives().at({Collective::all_reduce, "decision", 3}).calls, 1);
    EXPECT_EQ(traffic.collectives().at({Collective::all_reduce, "decision", world.rank() == 0 ? 1 : 2}).bytes, 8);
    EXPECT_EQ(traffic.total(Collective::all_reduce).calls, 2);
    traffic.reset();
    EXPECT_TRUE(traffic.collectives().empty());
  });
}

}  // namespace
}  // namespace shardmark
