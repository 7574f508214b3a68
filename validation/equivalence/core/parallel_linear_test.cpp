// Hard test 4: a column-parallel and a row-parallel layer: forward, dX, dW, db equal to serial, and bit for bit to one process that adds up
// the parts as the ranks do.

#include <gtest/gtest.h>

#include <cmath>

#include "base/random.hpp"
#include "model/layers.hpp"
#include "model/parallel_linear.hpp"
#include "model/pieces.hpp"
#include "model/tensor_part.hpp"
#include "validation/equivalence/core/harness.hpp"

namespace shardmark::testing {
namespace {

constexpr std::int64_t rows = 5, inputs = 12, outputs = 18;
constexpr UnitId unit{0};

enum class Split { none, column, row };

struct Result {
  std::vector<double> y, dx, dw, db;
};

double drawn(std::uint64_t stream, std::int64_t i) {
  return double(float(Randoms(2, Purpose::synthetic_data, stream).normal(std::uint64_t(i))));
}

/// Columns [begin, end) of a drawn [rows, width] matrix.
Tensor drawn_columns(Arena& arena, Stream& stream, std::uint64_t id, std::int64_t width, std::int64_t begin, std::int64_t end) {
  Tensor t = arena.make(DType::f64, {rows, end - begin}, Book::data, stream);
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t c = begin; c < end; ++c) t.view.as<double>()[r * (end - begin) + c - begin] = drawn(id, r * width + c);
  return t;
}

/// What one linear layer needs to run alone.
struct Layers {
  Layers(Initial initial, std::int64_t out, std::int64_t in, Slice cut, Slice bias_cut)
      : model{.spec = {}, .blocks = {}, .dtype = DType::f64, .seed = 11},
        weight((model.spec.add_unit("layer"), model.spec.add(unit, "fc.weight", {out, in}, initial, true, cut))),
        bias(model.spec.add(unit, "fc.bias", {out}, initial, false, bias_cut)),
        store((arena.watch(*stream), model.spec), {unit}, {{unit, 0}}, {}, {}, {.compute = DType::f64}, arena, *ops, *stream) {
    initialise(model, store, *ops, *stream);
  }
  Context context(TensorGroup& group) {
    return {.ops = *ops,
            .stream = *stream,
            .arena = arena,
            .store = store,
            .version = Version{0},
            .micro = micro,
            .pieces = alone,
            .tensor = group};
  }
  Model model;
  ParamId weight, bias;
  std::unique_ptr<Backend> ops = make_reference_backend();
  std::unique_ptr<Stream> stream = ops->stream();
  Pages pages{1 << 20};
  Ledger ledger;
  Arena arena{{pages.data(), pages.bytes(), Place::host, Book::workspace}, ledger};
  ParameterStore store;
  MicroBatch micro;
  LocalPieces alone{1};
};

/// `held` says which part the group's process has.
Result run_layer(Split split, TensorGroup& group, TensorPart held) {
  Slice const cut = split == Split::none     ? Slice{}
                    : split == Split::column ? held.slice(0, outputs, "outputs")
                                             : held.slice(1, inputs, "inputs");
  Layers one({Initial::Kind::normal, 1}, outputs, inputs, cut, split == Split::column ? cut : Slice{});
  std::unique_ptr<Layer> layer;
  Linear::Parameters const parameters{one.weight, one.bias};
  if (split == Split::none) layer = std::make_unique<Linear>(parameters, Activation::none, 0);
  if (split == Split::column)
    layer = std::make_unique<ColumnParallelLinear>(parameters, Activation::none, InputIs::activation, TokenRows::whole, 0);
  if (split == Split::row) layer = std::make_unique<RowParallelLinear>(parameters, Activation::none, TokenRows::whole, 1, 0);
  bool const by_rows = split == Split::row, by_columns = split == Split::column;
  std::int64_t const x0 = by_rows ? cut.begin : 0, x1 = by_rows ? cut.end : inputs;
  std::int64_t const y0 = by_columns ? cut.begin : 0, y1 = by_columns ? cut.end : outputs;
  Context context = one.context(group);
  Stash stash(Linear::slots);
  Result out;
  out.y = values_of(layer->forward(drawn_columns(one.arena, *one.stream, 1, inputs, x0, x1), context, stash).view);
  one.store.gradients().begin({unit, 0}, 0, *one.stream);
  out.dx = values_of(layer->backward(drawn_columns(one.arena, *one.stream, 2, outputs, y0, y1), context, stash, Wanted::both).view);
  out.dw = values_of(one.store.gradient(one.weight, 1, 0));
  out.db = values_of(one.store.gradient(one.bias, 1, 0));
  return out;
}

Result run_rank(Split split, Communicator& world) {
  RankTensorGroup group(world, Reduction::fixed_tree);
  return run_layer(split, group, {world.size(), world.rank()});
}

/// One process with all parts.
Result run_twin(Split split, int parts) {
  LocalTensorGroup group(parts);
  return run_layer(split, group, {parts, TensorPart::all_parts});
}

Result run_serial() { return run_twin(Split::none, 1); }

/// Element (r, c) of the serial result against the piece that holds columns [begin, end) of rows of `width`.
void expect_columns(std::vector<double> const& piece, std::vector<double> const& whole, std::int64_t width, std::int64_t begin,
                    std::int64_t end, char const* what) {
  std::int64_t const n = std::int64_t(whole.size()) / width;
  ASSERT_EQ(piece.size(), std::size_t(n * (end - begin))) << what;
  double largest = 0;
  for (double v : whole) largest = std::max(largest, std::abs(v));
  for (std::int64_t r = 0; r < n; ++r)
    for (std::int64_t c = begin; c < end; ++c)
      // Sums of at most 18 terms, reassociated: 4 sqrt(h) u sum|x| with sum|x| <= 18 max (validation.md, Bounds).
      EXPECT_NEAR(piece[std::size_t(r * (end - begin) + c - begin)], whole[std::size_t(r * width + c)],
                  4 * std::sqrt(18.0) * 0x1p-53 * 18 * largest)
          << what << " " << r << "," << c;
}

class ParallelLinear : public ::testing::TestWithParam<int> {};

TEST_P(ParallelLinear, column_equals_serial) {
  Result const serial = run_serial();
  run_thread_ranks(GetParam(), [&](Communicator& world) {
    Result const mine = run_rank(Split::column, world);
    std::int64_t const n = outputs / world.size(), begin = n * world.rank(), end = begin + n;
    expect_columns(mine.y, serial.y, outputs, begin, end, "y");
    expect_columns(mine.dx, serial.dx, inputs, 0, inputs, "dX");
    // Rows of W are contiguous: a column split is a range of the flat weight and bias, complete without communication.
    EXPECT_EQ(mine.dw, std::vector<double>(serial.dw.begin() + begin * inputs, serial.dw.begin() + end * inputs));
    EXPECT_EQ(mine.db, std::vector<double>(serial.db.begin() + begin, serial.db.begin() + end));
  });
}

TEST_P(ParallelLinear, row_equals_serial) {
  Result const serial = run_serial();
  run_thread_ranks(GetParam(), [&](Communicator& world) {
    Result const mine = run_rank(Split::row, world);
    std::int64_t const n = inputs / world.size(), begin = n * world.rank(), end = begin + n;
    expect_columns(mine.y, serial.y, outputs, 0, outputs, "y");
    expect_columns(mine.dx, serial.dx, inputs, begin, end, "dX");
    expect_columns(mine.dw, serial.dw, inputs, begin, end, "dW");
    EXPECT_EQ(mine.db, serial.db);
  });
}

std::vector<double> columns_of(std::vector<double> const& whole, std::int64_t width, std::int64_t begin, std::int64_t end) {
  std::vector<double> out;
  for (std::size_t i = 0; i < whole.size(); ++i)
    if (std::int64_t const c = std::int64_t(i) % width; c >= begin && c < end) out.push_back(whole[i]);
  return out;
}

TEST_P(ParallelLinear, twin_has_the_bits_of_the_ranks) {
  Result const columns = run_twin(Split::column, GetParam()), rows_twin = run_twin(Split::row, GetParam());
  run_thread_ranks(GetParam(), [&](Communicator& world) {
    EXPECT_EQ(run_rank(Split::column, world).dx, columns.dx);
    Result const row = run_rank(Split::row, world);
    std::int64_t const n = inputs / world.size(), begin = n * world.rank();
    EXPECT_EQ(row.y, rows_twin.y);
    EXPECT_EQ(row.dx, columns_of(rows_twin.dx, inputs, begin, begin + n));
    EXPECT_EQ(row.dw, columns_of(rows_twin.dw, inputs, begin, begin + n));
  });
}

/// W = 0 and b = (1, 2, 3): the output is b, not t b.
TEST(RowParallelBias, case_07_is_added_once) {
  for (int ranks : {2, 4})
    run_thread_ranks(ranks, [&](Communicator& world) {
      TensorPart const part{world.size(), world.rank()};
      Layers one(Initial{}, 3, 8, part.slice(1, 8, "inputs"), {});
      View const b = one.store.weight(one.bias, Version{0});
      for (int i = 0; i < 3; ++i) b.as<double>()[i] = i + 1;
      RankTensorGroup group(world, Reduction::fixed_tree);
      RowParallelLinear layer({one.weight, one.bias}, Activation::none, TokenRows::whole, 1, 0);
      Context context = one.context(group);
      Stash stash(Linear::slots);
      Tensor const x = drawn_columns(one.arena, *one.stream, 1, 8, part.slice(1, 8, "inputs").begin, part.slice(1, 8, "inputs").end);
      auto const y = values_of(layer.forward(x, context, stash).view);
      for (std::size_t i = 0; i < y.size(); ++i) EXPECT_EQ(y[i], double(i % 3 + 1));
    });
}

TEST(ParallelLinearRefusals, case_10_uneven_splits_list_the_divisors) {
  try {
    even_slice(0, 6, 4, 0, "heads");
    FAIL();
  } catch (BadRequest const& error) {
    EXPECT_NE(std::string(error.what()).find("1, 2, 3, 6"), std::string::npos) << error.what();
  }
}

INSTANTIATE_TEST_SUITE_P(Ranks, ParallelLinear, ::testing::Values(2, 3, 6));

}  // namespace
}  // namespace shardmark::testing
