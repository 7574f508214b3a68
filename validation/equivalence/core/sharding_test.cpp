// Hard test 3: 57 parameters sharded over 2, 3, 4, 7 ranks equal unsharded ones, bit for bit: units, equal padded shards, cuts that
// fall anywhere in a tensor (case 57).

#include <gtest/gtest.h>

#include "base/random.hpp"
#include "model/store.hpp"
#include "validation/equivalence/core/harness.hpp"

namespace shardmark::testing {
namespace {

/// 57 = 6 x 7 + 8 + 7, as one unit; matrices decay.
ModelSpec spec_of_57() {
  ModelSpec spec;
  UnitId const unit = spec.add_unit("u");
  spec.add(unit, "w", {6, 7}, {Initial::Kind::normal, 0.5}, true);
  spec.add(unit, "v", {4, 2}, {Initial::Kind::normal, 0.5}, true);
  spec.add(unit, "b", {7}, {Initial::Kind::normal, 0.5}, false);
  return spec;
}

constexpr UnitId unit{0};
constexpr Segment segment{unit, 0};
constexpr int steps = 3;

/// The local gradient of `rank` at `step`.
void fill_gradient(View const& gradient, int rank, int step) {
  Randoms const random(9, Purpose::synthetic_data, std::uint64_t(rank * 100 + step));
  for (std::int64_t i = 0; i < gradient.elements(); ++i) gradient.as<float>()[i] = float(random.normal(std::uint64_t(i)));
}

void start_weights(ParameterStore& store) {
  View const w = store.flat(Part::compute, unit, Version{0});
  Randoms const random(4, Purpose::initial_weights, 0);
  for (std::int64_t i = 0; i < 57; ++i) w.as<float>()[i] = float(random.normal(std::uint64_t(i)));
}

AdamWUpdate update_of(View const& weight, View const& gradient, View const& first, View const& second, View const& scalars,
                      std::int64_t begin) {
  std::int64_t const n = weight.elements();
  auto const clamp = [&](std::int64_t i) { return std::clamp<std::int64_t>(i - begin, 0, n); };
  return {.weight = weight,
          .gradient = gradient,
          .first = first,
          .second = second,
          .out = weight,
          .compute = {},
          .scalars = scalars,
          .decay = 0.1,
          .decay_from = clamp(0),
          .decay_to = clamp(50)};
}

void set_scalars(View const& s, int step) {
  double* values = s.as<double>();
  std::fill_n(values, scalars, 0.0);
  values[int(Scalar::learning_rate)] = 1e-2;
  values[int(Scalar::clip)] = 1;
  values[int(Scalar::update)] = step + 1;
}

/// Everything on one rank: the sum of all ranks' gradients in the canonical tree, then the update.
std::vector<double> unsharded(int ranks) {
  ModelSpec const spec = spec_of_57();
  auto ops = make_reference_backend();
  auto stream = ops->stream();
  Pages pages(1 << 20);
  Ledger ledger;
  Arena arena({pages.data(), pages.bytes(), Place::host, Book::workspace}, ledger);
  arena.watch(*stream);
  ParameterStore store(spec, {unit}, {segment}, {}, {ranks, 1}, {.states = 2}, arena, *ops, *stream);
  start_weights(store);
  Tensor s = arena.make(DType::f64, {scalars}, Book::workspace, *stream);
  for (int step = 0; step < steps; ++step) {
    for (int r = 0; r < ranks; ++r) {
      store.gradients().begin(segment, r, *stream);
      fill_gradient(store.gradients().leaf(segment), r, step);
      store.gradients().fold(segment, r, *stream);
    }
    set_scalars(s.view, step);
    ops->run(*stream, update_of(store.flat(Part::compute, unit, Version{0}), store.gradients().total(segment),
                                store.flat(Part::state0, unit, {}), store.flat(Part::state1, unit, {}), s.view, 0));
    store.gradients().restart();
  }
  return values_of(store.flat(Part::compute, unit, Version{0}));
}

/// Each rank owns one equal piece: reduce-scatter, update of the piece, all-gather (Rajbhandari et al. 2020).
std::vector<double> sharded(Communicator& world) {
  ModelSpec const spec = spec_of_57();
  auto ops = make_reference_backend();
  auto stream = ops->stream();
  Pages pages(1 << 20);
  Ledger ledger;
  Arena arena({pages.data(), pages.bytes(), Place::host, Book::workspace}, ledger);
  arena.watch(*stream);
  int const n = world.size(), me = world.rank();
  ParameterStore store(spec, {unit}, {segment}, {}, {}, {.states = 2, .shards = {Sharing::optimizer, n, me}}, arena, *ops, *stream);
  start_weights(store);
  std::int64_t const piece = store.piece(Part::compute, unit, Version{0}).elements();
  Tensor s = arena.make(DType::f64, {scalars}, Book::workspace, *stream);
  Tensor mine = arena.make(DType::f32, {piece}, Book::gradients, *stream),
         weights = arena.make(DType::f32, {piece * n}, Book::parameters, *stream);
  for (int step = 0; step < steps; ++step) {
    store.gradients().begin(segment, 0, *stream);
    fill_gradient(store.gradients().leaf(segment), me, step);
    world.post(*stream, Exchange{.what = Collective::reduce_scatter, .send = store.gradients().range(segment, segment), .recv = mine})
        .wait(*stream);
    set_scalars(s.view, step);
    View const w = store.piece(Part::compute, unit, Version{0});
    ops->run(*stream,
             update_of(w, mine.view, store.piece(Part::state0, unit, {}), store.piece(Part::state1, unit, {}), s.view, me * piece));
    ops->run(*stream, Copy{w, mine.view});
    world.post(*stream, Exchange{.what = Collective::all_gather, .send = mine, .recv = weights}).wait(*stream);
    ops->run(*stream, Copy{weights.view, store.flat(Part::compute, unit, Version{0})});
  }
  return values_of(slice(store.flat(Part::compute, unit, Version{0}), 0, 0, 57));
}

class Sharding : public ::testing::TestWithParam<int> {};

TEST_P(Sharding, case_57_pieces_of_57_equal_the_whole_bitwise) {
  std::vector<double> const want = unsharded(GetParam());
  std::mutex mutex;
  run_thread_ranks(GetParam(), [&](Communicator& world) {
    std::vector<double> const got = sharded(world);
    std::lock_guard lock(mutex);
    EXPECT_EQ(got, want) << "rank " << world.rank();
  });
}

INSTANTIATE_TEST_SUITE_P(Ranks, Sharding, ::testing::Values(2, 3, 4, 5, 7));

}  // namespace
}  // namespace shardmark::testing
