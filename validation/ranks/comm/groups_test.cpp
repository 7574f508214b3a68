#include <vector>

#include "comm/mesh.hpp"
#include "validation/ranks/comm/contract.hpp"

namespace shardmark::contract {
namespace {

/// The sum over `group` of value, by a collective.
double sum_over(Rank& r, Communicator& group, double value) {
  all_sum(group, r.arena, r.stream, {&value, 1});
  return value;
}

TEST(Comm, split_makes_groups_by_colour_in_rank_order) {
  on_each_world([](Rank& r) {
    std::vector<int> colours;
    for (int rank = 0; rank < r.n; ++rank) colours.push_back(rank % 2);
    auto const half = r.world.split(colours);
    ASSERT_NE(half, nullptr);
    EXPECT_EQ(half->rank(), r.me / 2);
    EXPECT_EQ(half->size(), (r.n + 1 - r.me % 2) / 2);
    EXPECT_EQ(half->name(), r.world.name());
    double expected = 0;
    for (int rank = r.me % 2; rank < r.n; rank += 2) expected += rank;
    EXPECT_EQ(sum_over(r, *half, r.me), expected);

    auto const again = half->split(std::vector<int>(std::size_t(half->size()), 3));
    EXPECT_EQ(sum_over(r, *again, r.me), expected);
    EXPECT_EQ(sum_over(r, r.world, 1), r.n);
  });
}

TEST(Comm, a_negative_colour_is_in_no_group) {
  on_each_world([](Rank& r) {
    std::vector<int> colours(std::size_t(r.n), 0);
    colours[0] = -1;
    auto const rest = r.world.split(colours);
    EXPECT_EQ(rest == nullptr, r.me == 0);
    if (rest != nullptr) {
      EXPECT_EQ(sum_over(r, *rest, 1), r.n - 1);
    }
  });
}

// Rank 0 waits in one group while the others need it in another.
TEST(Comm, a_wait_serves_all_groups_of_the_rank) {
  on_each_world([](Rank& r) {
    auto const other = r.world.split(std::vector<int>(std::size_t(r.n), 0));
    Tensor const sum = r.filled(DType::f32, 200'000, [&](std::int64_t i) { return number(r.me, i); });
    Tensor const word = r.filled(DType::f32, 1, [](std::int64_t) { return 8; }), got = r.make(DType::f32, 1);
    Request reduce = r.post({Collective::all_reduce, sum, sum});
    if (r.me == 0 && r.n > 1) {
      Message const m{Direction::receive, r.n - 1, 0, got};
      other->post(r.stream, std::span(&m, 1)).wait(r.stream);
      EXPECT_EQ(get(got.view, 0), 8);
    }
    reduce.wait(r.stream);
    if (r.me == r.n - 1 && r.n > 1) {
      Message const m{Direction::send, 0, 0, word};
      other->post(r.stream, std::span(&m, 1)).wait(r.stream);
    }
    EXPECT_EQ(difference(sum.view, [&](std::int64_t i) { return sum_of_numbers(r.n, i); }), "");
  });
}

TEST(Comm, helpers_agree_on_host_values) {
  on_each_world([](Rank& r) {
    std::vector<double> values{double(r.me), 1, -double(r.me)};
    all_sum(r.world, r.arena, r.stream, values);
    double const total = r.n * (r.n - 1) / 2.0;
    EXPECT_EQ(values, (std::vector<double>{total, double(r.n), -total}));

    std::vector<double> const mine{double(r.me), 0.5};
    std::vector<double> all(std::size_t(2 * r.n));
    all_gather(r.world, r.arena, r.stream, mine, all);
    for (int p = 0; p < r.n; ++p) EXPECT_EQ(all[std::size_t(2 * p)], p);

    std::string text = r.me == r.n - 1 ? "hello" : ".....";
    broadcast(r.world, r.arena, r.stream, std::as_writable_bytes(std::span(text)), r.n - 1);
    EXPECT_EQ(text, "hello");
    barrier(r.world, r.arena, r.stream);
    EXPECT_EQ(r.world.outstanding(), 0);
  });
}

TEST(Comm, symmetric_memory_is_memory) {
  on_each_world([](Rank& r) {
    auto const region = r.world.symmetric(10'000);
    EXPECT_EQ(region.has_value(), r.world.name() != "mpi");  // MPI has none
    if (!region) return;
    EXPECT_GE(region->bytes, 10'000u);
    Tensor t;
    t.storage = std::make_shared<Region>(*region);
    std::int64_t const shape[] = {1000};
    t.view = view_at(region->data, t.storage.get(), DType::f64, shape);
    for (int i = 0; i < 1000; ++i) set(t.view, i, number(r.me, i));
    r.run({Collective::all_reduce, t, t});
    EXPECT_EQ(difference(t.view, [&](std::int64_t i) { return sum_of_numbers(r.n, i); }), "");
  });
}

void check_mesh(Rank& r, MeshShape shape) {
  Mesh mesh(r.world, shape, {{"ends", {0, shape.pipeline - 1}}});
  int const t = r.me % shape.tensor, d = r.me / shape.tensor % shape.data, p = r.me / (shape.tensor * shape.data);
  EXPECT_EQ(mesh.coordinate(Axis::tensor), t);
  EXPECT_EQ(mesh.coordinate(Axis::data), d);
  EXPECT_EQ(mesh.coordinate(Axis::pipeline), p);
  auto const expect_group = [&](Axes set, int rank, int size) {
    EXPECT_EQ(mesh.over(set).rank(), rank) << int(set);
    EXPECT_EQ(mesh.over(set).size(), size) << int(set);
  };
  expect_group(0, 0, 1);
  expect_group(axes(Axis::tensor), t, shape.tensor);
  expect_group(axes(Axis::data), d, shape.data);
  expect_group(axes(Axis::pipeline), p, shape.pipeline);
  expect_group(Axis::data | Axis::tensor, d * shape.tensor + t, shape.data * shape.tensor);
  expect_group(Axis::pipeline | Axis::tensor, p * shape.tensor + t, shape.pipeline * shape.tensor);
  expect_group(7, r.me, r.n);
  // Members differ in their pipeline coordinate alone.
  EXPECT_EQ(sum_over(r, mesh.over(axes(Axis::pipeline)), d * 100 + t), shape.pipeline * (d * 100 + t));
  bool const end = p == 0 || p == shape.pipeline - 1;
  if (end) {
    EXPECT_EQ(sum_over(r, mesh.named("ends"), 1), shape.pipeline == 1 ? 1 : 2);
  } else {
    EXPECT_THROW(mesh.named("ends"), Error);
  }
  EXPECT_THROW(mesh.named("nobody"), Error);
}

TEST(Comm, a_mesh_has_a_group_for_every_set_of_axes) {
  on_each_world([](Rank& r) {
    check_mesh(r, {.data = r.n});
    if (r.n % 2 == 0) check_mesh(r, {.data = r.n / 2, .pipeline = 2});
    EXPECT_THROW(Mesh(r.world, {.data = r.n + 1}), BadRequest);
  });
}

TEST(Comm, a_mesh_of_all_axes) {
  on_each_world([](Rank& r) { check_mesh(r, r.n == 4 ? MeshShape{.pipeline = 2, .tensor = 2} : MeshShape{.pipeline = r.n}); });
}

}  // namespace
}  // namespace shardmark::contract
