// The deterministic matmul: equal to the reference within rounding, and the same bits however M and N are split.

#include "workbench.hpp"

namespace shardmark {
namespace {

using testing::Workbench;

struct MatmulOn : testing::OnInstructionSet {
  Matmul problem(DType type, std::int64_t m, std::int64_t n, std::int64_t k, Transpose ta, Transpose tb, std::int64_t gap = 0) {
    Matmul op;
    op.ta = ta;
    op.tb = tb;
    op.a = ta == Transpose::no ? bench.random(type, {m, k}, -1, 1, gap) : bench.random(type, {k, m}, -1, 1, gap);
    op.b = tb == Transpose::no ? bench.random(type, {k, n}, -1, 1, gap) : bench.random(type, {n, k}, -1, 1, gap);
    op.c = bench.random(type, {m, n}, -1, 1, gap);
    return op;
  }
  /// Rows [m0, m1) and columns [n0, n1) of the product.
  static Matmul part(Matmul op, std::int64_t m0, std::int64_t m1, std::int64_t n0, std::int64_t n1) {
    op.a = slice(op.a, op.ta == Transpose::no ? 0 : 1, m0, m1);
    op.b = slice(op.b, op.tb == Transpose::no ? 1 : 0, n0, n1);
    op.c = slice(slice(op.c, 0, m0, m1), 1, n0, n1);
    if (op.bias) op.bias = slice(op.bias, 0, n0, n1);
    if (op.aux) op.aux = slice(slice(op.aux, 0, m0, m1), 1, n0, n1);
    return op;
  }
  /// Of a product of 700 x 90.
  void expect_same_in_three_pieces(Matmul const& whole) {
    Matmul pieces = whole;
    pieces.c = bench.copy(whole.c);
    run(whole);
    run(part(pieces, 0, 333, 0, 90));
    run(part(pieces, 333, 700, 0, 44));
    run(part(pieces, 333, 700, 44, 90));
    testing::expect_same_bits(pieces.c, whole.c, "700 rows");
  }
  /// 4 sqrt(K) u sum |a| |b|, the statistical form of Higham's gamma, and a few roundings of what is added afterwards.
  View bounds(Matmul op, DType type, std::int64_t k) {
    for (View* v : {&op.a, &op.b}) {
      *v = bench.copy(*v);
      Workbench::each(*v, [](auto& x) { x = std::remove_reference_t<decltype(x)>(std::abs(x)); });
    }
    View const c = bench.copy(op.c);
    op.c = c;
    op.write = Write::overwrite;
    op.epilogue = Epilogue::none;
    op.bias = op.aux = {};
    run_reference(op);
    double const factor = 4 * std::sqrt(double(k) + 1) * unit_roundoff(type);
    Workbench::each(c, [&](auto& x) { x = std::remove_reference_t<decltype(x)>(factor * double(x) + 16 * unit_roundoff(type)); });
    return c;
  }
  void expect_equal_to_reference(Matmul op, std::int64_t k, std::string const& what) {
    Matmul expected = op;
    expected.c = bench.copy(op.c);
    if (op.aux) expected.aux = bench.copy(op.aux);
    std::vector<double> const bound = Workbench::values(bounds(op, op.c.dtype, k));
    run(op);
    run_reference(expected);
    testing::expect_near(op.c, expected.c, what, [&](std::size_t i) { return 2 * bound[i]; });
    if (op.aux) testing::expect_near(op.aux, expected.aux, what + " aux", [&](std::size_t i) { return 2 * bound[i]; });
  }
};

constexpr Transpose flips[][2] = {
    {Transpose::no, Transpose::no}, {Transpose::no, Transpose::yes}, {Transpose::yes, Transpose::no}, {Transpose::yes, Transpose::yes}};

std::string describe(DType type, std::int64_t m, std::int64_t n, std::int64_t k, Transpose ta, Transpose tb) {
  return std::string(name(type)) + " " + std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k) +
         (ta == Transpose::yes ? "T" : "N") + (tb == Transpose::yes ? "T" : "N");
}

TEST_P(MatmulOn, EqualsReferenceWithinRounding) {
  std::int64_t const shapes[][3] = {{1, 1, 1},    {3, 5, 7},    {17, 48, 61}, {14, 32, 16},   {15, 33, 319},
                                    {64, 64, 64}, {1, 65, 320}, {29, 1, 321}, {31, 67, 1000}, {350, 40, 33}};
  for (DType const type : testing::floats)
    for (auto const [m, n, k] : shapes)
      for (auto const [ta, tb] : flips) {
        Matmul op = problem(type, m, n, k, ta, tb, m % 3);
        expect_equal_to_reference(op, k, describe(type, m, n, k, ta, tb));
        op.write = Write::accumulate;
        expect_equal_to_reference(op, k, "accumulated " + describe(type, m, n, k, ta, tb));
      }
}

TEST_P(MatmulOn, WiderThanOneBlockOfColumns) {
  Matmul const op = problem(DType::f32, 5, 4200, 40, Transpose::no, Transpose::no);
  expect_equal_to_reference(op, 40, "4200 columns");
  Matmul const wide = problem(DType::f64, 5, 2100, 40, Transpose::no, Transpose::yes);
  expect_equal_to_reference(wide, 40, "2100 columns in fp64");
}

TEST_P(MatmulOn, EpiloguesEqualReference) {
  for (DType const type : testing::floats)
    for (Epilogue const epilogue : {Epilogue::bias, Epilogue::bias_gelu})
      for (std::int64_t const k : {0, 1, 350}) {
        Matmul op = problem(type, 19, 45, k, Transpose::no, Transpose::yes, 2);
        op.epilogue = epilogue;
        op.bias = bench.random(type, {45}, -3, 3);
        expect_equal_to_reference(op, k, "epilogue without aux");
        if (epilogue == Epilogue::bias) continue;
        op.aux = bench.make(type, {19, 45}, 1);
        expect_equal_to_reference(op, k, "epilogue with aux");
      }
}

TEST_P(MatmulOn, ZeroSizes) {
  for (DType const type : testing::floats) {
    Matmul op = problem(type, 4, 5, 0, Transpose::no, Transpose::no);
    run(op);
    for (double const x : Workbench::values(op.c)) EXPECT_EQ(x, 0.0);
    op.c = bench.random(type, {4, 5});
    View const before = bench.copy(op.c);
    op.write = Write::accumulate;
    run(op);
    testing::expect_same_bits(op.c, before, "accumulating an empty sum");
    run(problem(type, 0, 5, 3, Transpose::no, Transpose::yes));
    run(problem(type, 4, 0, 3, Transpose::yes, Transpose::no));
  }
}

/// The bits of every piece are those of the whole: single rows and columns, and cuts inside and at the edges of micro-tiles.
TEST_P(MatmulOn, BitsDontDependOnSplitsOfRowsOrColumns) {
  std::int64_t const m = 37, n = 70;
  std::int64_t const m_cuts[] = {0, 1, 14, 15, 29, 36, 37}, n_cuts[] = {0, 1, 31, 32, 49, 69, 70};
  for (DType const type : testing::stored)
    for (std::int64_t const k : {1, 3, 319, 320, 321, 1000, 2048})
      for (auto const [ta, tb] : flips)
        for (Write const write : {Write::overwrite, Write::accumulate}) {
          Matmul whole = problem(type, m, n, k, ta, tb);
          whole.write = write;
          if (write == Write::overwrite) {
            whole.epilogue = Epilogue::bias_gelu;
            whole.bias = bench.random(type, {n});
            whole.aux = bench.make(type, {m, n});
          }
          Matmul pieces = whole;
          pieces.c = bench.copy(whole.c);
          if (whole.aux) pieces.aux = bench.copy(whole.aux);
          run(whole);
          for (std::size_t i = 1; i < std::size(m_cuts); ++i)
            for (std::size_t j = 1; j < std::size(n_cuts); ++j) run(part(pieces, m_cuts[i - 1], m_cuts[i], n_cuts[j - 1], n_cuts[j]));
          testing::expect_same_bits(pieces.c, whole.c, describe(type, m, n, k, ta, tb));
          if (whole.aux) testing::expect_same_bits(pieces.aux, whole.aux, "aux of " + describe(type, m, n, k, ta, tb));
        }
}

TEST_P(MatmulOn, BitsDontDependOnCutsAcrossBlocks) {
  Matmul const whole = problem(DType::f32, 700, 90, 330, Transpose::no, Transpose::no);
  expect_same_in_three_pieces(whole);
}

/// c narrower than its sums, which wait in scratch; and c as wide as the sums of narrow a and b.
TEST_P(MatmulOn, BitsOfNarrowProductsDontDependOnCutsAcrossBlocks) {
  Matmul whole = problem(DType::bf16, 700, 90, 330, Transpose::no, Transpose::yes);
  expect_same_in_three_pieces(whole);
  whole.write = Write::accumulate;
  expect_same_in_three_pieces(whole);
  whole.c = bench.random(DType::f32, {700, 90});
  expect_same_in_three_pieces(whole);
}

/// A packed once for all blocks of columns, and one that is too large for that, give the bits of pieces as wide as one block.
TEST_P(MatmulOn, BitsDontDependOnWhetherAIsKept) {
  struct Shape {
    DType type;
    std::int64_t m, n, k;
    Transpose ta;
  };
  Shape const shapes[] = {{DType::f32, 700, 1070, 650, Transpose::no},
                          {DType::f64, 173, 600, 650, Transpose::yes},
                          {DType::bf16, 700, 600, 650, Transpose::yes},
                          {DType::f32, 1700, 530, 650, Transpose::no}};
  for (auto const& [type, m, n, k, ta] : shapes) {
    Matmul const whole = problem(type, m, n, k, ta, Transpose::no);
    Matmul pieces = whole;
    pieces.c = bench.copy(whole.c);
    run(whole);
    for (std::int64_t at = 0; at < n; at += 250) run(part(pieces, 0, m, at, std::min(n, at + 250)));
    testing::expect_same_bits(pieces.c, whole.c, describe(type, m, n, k, ta, Transpose::no));
  }
}

/// Sums of small integers are exact in any order: a wrong index shows as a wrong integer.
TEST_P(MatmulOn, IntegersAreExact) {
  for (DType const type : testing::floats)
    for (auto const [ta, tb] : flips) {
      Matmul op = problem(type, 43, 77, 650, ta, tb);
      for (View const& v : {op.a, op.b}) Workbench::each(v, [](auto& x) { x = std::remove_reference_t<decltype(x)>(std::floor(x * 8)); });
      Matmul expected = op;
      expected.c = bench.copy(op.c);
      run(op);
      run_reference(expected);
      testing::expect_same_bits(op.c, expected.c, describe(type, 43, 77, 650, ta, tb));
    }
}

SHARDMARK_ON_EVERY_INSTRUCTION_SET(MatmulOn);

/// Ticks come often enough under a long product, and a short one does without.
TEST(MatmulTicks, ComeBetweenPanels) {
  auto const cpu = make_cpu_backend(Determinism::deterministic);
  HostStream stream(0);
  int ticks = 0;
  stream.progress([](void* count) { ++*static_cast<int*>(count); }, &ticks);
  Workbench bench;
  Matmul op;
  op.a = bench.random(DType::f32, {512, 512});
  op.b = bench.random(DType::f32, {512, 512});
  op.c = bench.make(DType::f32, {512, 512});
  cpu->run(stream, op);
  // 0.27 GFLOP: some milliseconds, at least two ticks in each.
  EXPECT_GE(ticks, 8);
}

/// The library's path: the same products within rounding, zero sizes included.
TEST(LibraryMatmul, EqualsReferenceWithinRounding) {
  auto const cpu = make_cpu_backend(Determinism::fastest), reference = make_reference_backend();
  auto const stream = cpu->stream();
  Workbench bench;
  for (std::int64_t const k : {0, 1, 77})
    for (Epilogue const epilogue : {Epilogue::none, Epilogue::bias, Epilogue::bias_gelu}) {
      Matmul op;
      op.a = bench.random(DType::f32, {33, k}, -1, 1, 3);
      op.b = bench.random(DType::f32, {20, k}, -1, 1, 1);
      op.c = bench.make(DType::f32, {33, 20}, 2);
      op.tb = Transpose::yes;
      op.epilogue = epilogue;
      if (epilogue != Epilogue::none) op.bias = bench.random(DType::f32, {20});
      if (epilogue == Epilogue::bias_gelu) op.aux = bench.make(DType::f32, {33, 20});
      Matmul expected = op;
      expected.c = bench.copy(op.c);
      if (op.aux) expected.aux = bench.copy(op.aux);
      cpu->run(*stream, op);
      reference->run(*stream, expected);
      double const bound = 4 * std::sqrt(double(k) + 1) * 0x1p-24 * double(k + 8);
      testing::expect_near(op.c, expected.c, "library", [=](std::size_t) { return bound; });
      if (op.aux) testing::expect_near(op.aux, expected.aux, "library aux", [=](std::size_t) { return bound; });
    }
}

TEST(CpuBackend, UnknownInstructionSetIsABadRequest) { EXPECT_THROW(make_cpu_backend(Determinism::fastest, "sse9"), BadRequest); }

}  // namespace
}  // namespace shardmark
