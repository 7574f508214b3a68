// Vectorised passes against the reference, over odd and zero sizes and strided rows, on every instruction set.

#include "workbench.hpp"

namespace shardmark {
namespace {

using testing::Workbench;

std::string describe(DType type, std::int64_t a, std::int64_t b = -1) {
  std::string text(name(type));
  text.append(" ").append(std::to_string(a));
  if (b >= 0) text.append("x").append(std::to_string(b));
  return text;
}

constexpr std::int64_t sizes[] = {0, 1, 3, 4, 7, 8, 15, 16, 17, 31, 33, 64, 65, 127, 1000};
constexpr std::int64_t row_counts[] = {0, 1, 5, 64, 65, 130};

struct PassesOn : testing::OnInstructionSet {};

TEST_P(PassesOn, Activations) {
  for (DType const type : testing::floats)
    for (std::int64_t const n : sizes)
      for (std::int64_t const gap : {0, 3}) {
        View const x = bench.random(type, {3, n}, -9, 9, gap), dy = bench.random(type, {3, n}, -2, 2, gap);
        expect_like_reference(Gelu{x, bench.make(type, {3, n}, gap)}, "gelu " + describe(type, n), 16);
        expect_like_reference(GeluInput{x, dy, bench.make(type, {3, n}, gap)}, "gelu_input " + describe(type, n), 32);
        expect_like_reference(Relu{x, bench.make(type, {3, n}, gap)}, "relu " + describe(type, n), 0);
        expect_like_reference(ReluInput{x, dy, bench.make(type, {3, n}, gap)}, "relu_input " + describe(type, n), 0);
      }
}

TEST_P(PassesOn, ActivationsAtTheEdgesOfTheirRange) {
  double const edges[] = {0.0, -0.0, 1e-30, -1e-30, 1e-6, -1e-6, 4, -4, 12, -12, 30, -30, 90, -90, 1e4, -1e4};
  for (DType const type : testing::floats) {
    View const x = bench.make(type, {std::int64_t(std::size(edges))}), dy = bench.random(type, {std::int64_t(std::size(edges))});
    std::size_t i = 0;
    Workbench::each(x, [&](auto& value) { value = std::remove_reference_t<decltype(value)>(edges[i++]); });
    View const y = bench.copy(x), dx = bench.copy(x);
    run(Gelu{x, y});
    run(GeluInput{x, dy, dx});
    View const expected_y = bench.copy(x), expected_dx = bench.copy(x);
    run_reference(Gelu{x, expected_y});
    run_reference(GeluInput{x, dy, expected_dx});
    double const u = unit_roundoff(type);
    testing::expect_near(y, expected_y, "gelu", [&](std::size_t j) { return 8 * u * std::abs(edges[j]); });
    // Far out the slope is 0 or 1 times dy; near 1 the rounding of the argument of exp counts.
    testing::expect_near(dx, expected_dx, "gelu_input", [&](std::size_t) { return 64 * u; });
  }
}

/// Near 0 from below, where 1 + tanh cancels: relative accuracy against long double.
TEST_P(PassesOn, GeluHasRelativeAccuracyForNegativeArguments) {
  for (DType const type : testing::floats) {
    View const x = bench.random(type, {4000}, -6, 0), y = bench.copy(x);
    run(Gelu{x, y});
    std::vector<double> const in = Workbench::values(x), out = Workbench::values(y);
    for (std::size_t i = 0; i < in.size(); ++i) {
      long double const a = in[i], twice = 1.5957691216057307117597842397375L * (a + 0.044715L * a * a * a);
      long double const exact = a / (1 + std::exp(-twice));
      // The argument of exp has rounding errors of a few u relative, which exp multiplies by the argument.
      long double const bound = (4 + 4 * std::abs(twice)) * unit_roundoff(type) * std::abs(exact);
      ASSERT_LE(std::abs(out[i] - exact), bound) << name(type) << " x = " << in[i];
    }
  }
}

TEST_P(PassesOn, ReluAndFlagLetNaNThrough) {
  for (DType const type : testing::floats)
    for (double const bad : {std::nan(""), HUGE_VAL, -HUGE_VAL})
      for (std::int64_t at : {0, 15, 16, 36}) {
        View const x = bench.random(type, {37}), y = bench.copy(x), flag = bench.random(DType::f64, {1}, 0, 0);
        run(FlagNonFinite{x, flag});
        EXPECT_EQ(*flag.as<double>(), 0);
        Workbench::each(slice(x, 0, at, at + 1), [&](auto& value) { value = std::remove_reference_t<decltype(value)>(bad); });
        run(FlagNonFinite{x, flag});
        EXPECT_EQ(*flag.as<double>(), 1) << bad << " at " << at;
        run(Relu{x, y});
        EXPECT_EQ(std::isnan(Workbench::values(y)[std::size_t(at)]), std::isnan(bad));
      }
}

TEST_P(PassesOn, LayerNorm) {
  for (DType const type : testing::floats)
    for (std::int64_t const rows : row_counts)
      for (std::int64_t const n : {1, 3, 16, 33, 100, 1030}) {
        std::string const what = describe(type, rows, n);
        double const factor = 32 + 8 * std::sqrt(double(n));
        View const x = bench.random(type, {rows, n}, -2, 3, 1), dy = bench.random(type, {rows, n}, -1, 1, 2);
        View const gamma = bench.random(type, {n}, 0.5, 1.5), beta = bench.random(type, {n});
        LayerNorm const forward{x, gamma, beta, bench.make(type, {rows, n}), bench.make(type, {rows}), bench.make(type, {rows})};
        if (n > 1) expect_like_reference(forward, "layer_norm " + what, factor);
        run_reference(forward);
        if (n > 1)
          expect_like_reference(LayerNormInput{dy, x, gamma, forward.mean, forward.rstd, bench.make(type, {rows, n})},
                                "layer_norm_input " + what, 4 * factor);
        for (Write const write : {Write::overwrite, Write::accumulate})
          expect_like_reference(LayerNormWeight{dy, x, forward.mean, forward.rstd, bench.random(type, {n}), bench.random(type, {n}), write},
                                "layer_norm_weight " + what, 16 + 8 * std::sqrt(double(rows)));
      }
}

TEST_P(PassesOn, ColumnSum) {
  for (DType const type : testing::floats)
    for (std::int64_t const rows : row_counts)
      for (std::int64_t const n : {0, 1, 33, 1025})
        for (Write const write : {Write::overwrite, Write::accumulate})
          expect_like_reference(ColumnSum{bench.random(type, {rows, n}, -1, 1, 2), bench.random(type, {n}), write},
                                "column_sum " + describe(type, rows, n), 16 + 4 * std::sqrt(double(rows)));
}

TEST_P(PassesOn, ColumnSumOverSlicedSequences) {
  View const whole = bench.random(DType::f32, {4, 9, 21});
  expect_like_reference(ColumnSum{slice(whole, 1, 2, 7), bench.make(DType::f32, {21})}, "column_sum of a slice", 40);
}

TEST_P(PassesOn, CrossEntropy) {
  for (DType const type : testing::floats)
    for (std::int64_t const rows : {0, 1, 7, 33})
      for (std::int64_t const n : {1, 2, 10, 33, 1500}) {
        View const logits = bench.random(type, {rows, n}, -5, 5, 1), target = bench.integers(DType::i32, {rows}, -1, n);
        View const tally = bench.random(DType::f64, {3}), expected_tally = bench.copy(tally), evaluation = bench.copy(tally);
        CrossEntropy const op{logits, target, tally, bench.make(type, {rows, n}), 0.25};
        CrossEntropy expected = op;
        expected.tally = expected_tally;
        expected.dlogits = bench.copy(op.dlogits);
        run(op);
        run_reference(expected);
        run({CrossEntropy{logits, target, evaluation, {}, 0.25}});
        std::string const what = "cross_entropy " + describe(type, rows, n);
        testing::expect_close(op.dlogits, expected.dlogits, what, 32 + std::sqrt(double(n)));
        std::vector<double> const ours = Workbench::values(tally), theirs = Workbench::values(expected_tally);
        EXPECT_NEAR(ours[0], theirs[0], 16 * double(rows + 1) * (8 + std::log(double(n))) * unit_roundoff(type)) << what;
        EXPECT_EQ(ours[1], theirs[1]) << what;
        EXPECT_EQ(ours[2], theirs[2]) << what;
        testing::expect_same_bits(tally, evaluation, what + " with and without gradient");
        // In place.
        View const in_place = bench.copy(logits);
        run(CrossEntropy{in_place, target, evaluation, in_place, 0.25});
        testing::expect_same_bits(in_place, op.dlogits, what + " in place");
      }
}

TEST_P(PassesOn, CrossEntropyCountsTheLowestOfEqualLogits) {
  View const logits = bench.random(DType::f32, {2, 40}, 1, 1), target = bench.integers(DType::i32, {2}, 0, 1);
  target.as<std::int32_t>()[1] = 20;
  View const tally = bench.random(DType::f64, {3}, 0, 0);
  run(CrossEntropy{logits, target, tally, {}, 1});
  EXPECT_EQ(tally.as<double>()[2], 1);
}

TEST_P(PassesOn, SlicedCrossEntropy) {
  for (DType const type : testing::floats)
    for (std::int64_t const rows : {0, 1, 33})
      for (std::int64_t const n : {1, 2, 33, 1500}) {
        std::string const what = "sliced_cross_entropy " + describe(type, rows, n);
        View const logits = bench.random(type, {rows, n}, -5, 5, 1), target = bench.integers(DType::i32, {rows}, -1, n);
        View const parts = bench.make(accumulator(type), {3, rows, softmax_part_size});
        std::int64_t const cuts[] = {0, n / 3, n / 3, n};  // the second slice is empty
        auto const columns = [&](View const& of, std::size_t s) { return slice(of, 1, cuts[s], cuts[s + 1]); };
        for (std::size_t s = 0; s < 3; ++s)
          expect_like_reference(SoftmaxPart{columns(logits, s), target, slice(parts, 0, std::int64_t(s), std::int64_t(s) + 1), cuts[s]},
                                what + " part", 32 + std::sqrt(double(n)));
        for (std::size_t const s : {0u, 2u}) {
          View const tally = bench.random(DType::f64, {3}), expected_tally = bench.copy(tally);
          SlicedCrossEntropy const op{
              columns(logits, s), target, parts, tally, bench.make(type, {rows, cuts[s + 1] - cuts[s]}), cuts[s], 0.25};
          SlicedCrossEntropy expected = op;
          expected.tally = expected_tally;
          expected.dlogits = bench.copy(op.dlogits);
          run(op);
          run_reference(expected);
          testing::expect_close(op.dlogits, expected.dlogits, what, 32);
          testing::expect_same_bits(tally, expected_tally, what + " tally: parts are merged alike");
          View const in_place = bench.copy(op.logits);
          run(SlicedCrossEntropy{in_place, target, parts, expected_tally, in_place, cuts[s], 0.25});
          testing::expect_same_bits(in_place, op.dlogits, what + " in place");
        }
      }
}

TEST_P(PassesOn, SquaredError) {
  for (DType const type : testing::floats)
    expect_like_reference(
        SquaredError{bench.random(type, {5, 7}), bench.random(type, {5, 7}), bench.random(DType::f64, {3}), bench.make(type, {5, 7}), 0.5},
        "squared_error", 0);
}

TEST_P(PassesOn, SumTreeHasTheBitsOfTheCanonicalTree) {
  for (DType const type : testing::floats)
    for (std::size_t const count : {1u, 2u, 3u, 4u, 5u, 6u, 7u, 8u, 11u, 16u, 23u})
      for (std::int64_t const n : {0, 1, 17, 100}) {
        std::vector<View> in;
        for (std::size_t i = 0; i < count; ++i) in.push_back(bench.random(type, {n}));
        expect_like_reference(SumTree{in, bench.make(type, {n})}, "sum_tree of " + std::to_string(count), 0);
        // Into one of its inputs.
        View const expected = bench.copy(in.back());
        run_reference(SumTree{in, expected});
        run(SumTree{in, in.back()});
        testing::expect_same_bits(in.back(), expected, "sum_tree in place");
      }
}

TEST_P(PassesOn, Embedding) {
  for (DType const type : testing::floats)
    for (std::int64_t const batch : {0, 3})
      for (std::int64_t const n : {1, 21}) {
        View const ids = bench.integers(DType::i32, {batch, 5}, 0, 11);
        View const table = bench.random(type, {11, n}), positions = bench.random(type, {6, n});
        expect_like_reference(Embedding{ids, table, positions, bench.make(type, {batch, 5, n})}, "embedding", 0);
        expect_like_reference(Embedding{ids, table, {}, bench.make(type, {batch, 5, n})}, "embedding without positions", 0);
        expect_like_reference(Embedding{ids, slice(table, 0, 3, 7), positions, bench.make(type, {batch, 5, n}), {3, 11}}, "slice", 0);
        View const dy = bench.random(type, {batch, 5, n}, -1, 1, 1);
        for (Write const write : {Write::overwrite, Write::accumulate}) {
          expect_like_reference(EmbeddingWeight{ids, dy, bench.random(type, {11, n}), write}, "embedding_weight", 0);
          expect_like_reference(EmbeddingWeight{ids, dy, bench.random(type, {4, n}), write, {3, 11}}, "embedding_weight of a slice", 0);
          expect_like_reference(PositionWeight{dy, bench.random(type, {6, n}), write}, "position_weight", 0);
        }
      }
}

TEST_P(PassesOn, CopiesAndFills) {
  for (DType const from : testing::floats)
    for (DType const to : testing::floats)
      for (std::int64_t const gap : {0, 2}) {
        View const source = bench.random(from, {3, 5, 7}, -1, 1, gap);
        expect_like_reference(Copy{source, bench.make(to, {3, 5, 7}, 2 - gap)}, "copy", 0);
        expect_like_reference(Copy{slice(source, 1, 2, 4), bench.make(to, {3, 2, 7})}, "copy of a slice", 0);
        expect_like_reference(Fill{bench.make(to, {3, 5, 7}, gap), 0.3}, "fill", 0);
      }
  View transposed = bench.random(DType::f32, {6, 4});
  std::swap(transposed.shape[0], transposed.shape[1]);
  std::swap(transposed.stride[0], transposed.stride[1]);
  expect_like_reference(Copy{transposed, bench.make(DType::f32, {4, 6})}, "copy of a transpose", 0);
  View const integers = bench.integers(DType::i64, {9}, -5, 5), copied = bench.integers(DType::i64, {9}, 0, 1);
  run(Copy{integers, copied});
  EXPECT_EQ(std::memcmp(integers.data, copied.data, integers.bytes()), 0);
}

TEST_P(PassesOn, NormLeavesAndTotals) {
  for (DType const type : testing::floats)
    for (std::int64_t const n : {0, 1, 1023, 1024, 1025, 5000}) {
      View const x = bench.random(type, {n}), leaves = bench.random(DType::f64, {(n + norm_leaf - 1) / norm_leaf});
      expect_like_reference(NormLeaves{x, leaves}, "norm_leaves " + describe(type, n), 64);
      expect_like_reference(TreeTotal{leaves, bench.make(DType::f64, {1})}, "tree_total", 0);
    }
}

SHARDMARK_ON_EVERY_INSTRUCTION_SET(PassesOn);

}  // namespace
}  // namespace shardmark
