// Which way a matrix product is made: how it is chosen, and that each way makes the same product.

#include "backend/cpu/matmul_paths.hpp"
#include "backend/cpu/library_matmul.hpp"
#include "workbench.hpp"

namespace shardmark {
namespace {

using cpu::Path;
using cpu::ProductShape;
using testing::Workbench;

constexpr std::array all_paths{Path::library, Path::packed, Path::own};

/// A shape that no other test uses; large enough for a trial.
ProductShape fresh(std::int64_t k) { return {4096, 4096, k, Transpose::no, Transpose::yes, DType::f32, DType::f32}; }

Path chosen(std::int64_t k, std::array<double, cpu::paths> const& rates) {
  cpu::choose_path(fresh(k), all_paths, rates);
  return cpu::find_choice(fresh(k))->path;
}

TEST(MatmulPaths, TheLibraryIsLeftOnlyForTwoPercent) {
  EXPECT_EQ(chosen(101, {100, 101, 101.9}), Path::library);
  EXPECT_EQ(chosen(102, {100, 103, 101}), Path::packed);
  EXPECT_EQ(chosen(103, {100, 103, 104}), Path::own);
  EXPECT_EQ(chosen(104, {100, 0, 0}), Path::library);
}

TEST(MatmulPaths, TheFirstTrialStays) {
  EXPECT_EQ(chosen(105, {100, 200, 0}), Path::packed);
  EXPECT_EQ(chosen(105, {200, 100, 0}), Path::packed);
}

TEST(MatmulPaths, EachPathIsTriedOnceForAShape) {
  std::vector<Path> made;
  auto const make = [&](Path path) { made.push_back(path); };
  cpu::by_fastest_path(fresh(106), Write::overwrite, all_paths, make);
  EXPECT_EQ(made.size(), 3 * all_paths.size());
  made.clear();
  cpu::by_fastest_path(fresh(106), Write::overwrite, all_paths, make);
  ASSERT_EQ(made.size(), 1u);
  EXPECT_EQ(made[0], cpu::find_choice(fresh(106))->path);
  made.clear();
  cpu::by_fastest_path(fresh(106), Write::accumulate, all_paths, make);
  EXPECT_EQ(made.size(), 1u);
}

/// Made twice, a sum would be wrong.
TEST(MatmulPaths, AProductThatAccumulatesIsMadeOnce) {
  int made = 0;
  cpu::by_fastest_path(fresh(107), Write::accumulate, all_paths, [&](Path path) {
    ++made;
    EXPECT_EQ(path, Path::library);
  });
  EXPECT_EQ(made, 1);
  EXPECT_EQ(cpu::find_choice(fresh(107)), nullptr);
}

TEST(MatmulPaths, SmallProductsAreNotTriedOut) {
  ProductShape const small{8, 8, 8, Transpose::no, Transpose::no, DType::f32, DType::f32};
  int made = 0;
  cpu::by_fastest_path(small, Write::overwrite, all_paths, [&](Path) { ++made; });
  EXPECT_EQ(made, 1);
  EXPECT_EQ(cpu::find_choice(small), nullptr);
}

TEST(MatmulPaths, ShapesAreNamedForRecords) {
  EXPECT_EQ(to_string(ProductShape{3, 5, 7, Transpose::yes, Transpose::no, DType::bf16, DType::f32}), "3x5x7 TN bf16 to fp32");
  EXPECT_EQ(to_string(fresh(9)), "4096x4096x9 NT fp32");
}

/// op(a) op(b) + bias by one path, against the reference's fp64.
template <class T, class C, class Multiply>
void expect_product(Transpose ta, Transpose tb, Write write, bool bias, Multiply&& multiply) {
  Workbench bench;
  std::int64_t const m = 33, n = 47, k = 130;
  DType const in = dtype_of<T>(), out = dtype_of<C>();
  View const a = ta == Transpose::no ? bench.random(in, {m, k}, -1, 1, 2) : bench.random(in, {k, m}, -1, 1, 2);
  View const b = tb == Transpose::no ? bench.random(in, {k, n}, -1, 1, 4) : bench.random(in, {n, k}, -1, 1, 4);
  View const c = bench.random(out, {m, n}, -1, 1, 2), beta = bench.random(in, {n});
  std::vector<double> const before = Workbench::values(c);
  cpu::MatmulCall<T, T, C> call{.a = a.as<T>(),
                                .b = b.as<T>(),
                                .c = c.as<C>(),
                                .lda = a.stride[0],
                                .ldb = b.stride[0],
                                .ldc = c.stride[0],
                                .m = m,
                                .n = n,
                                .k = k,
                                .ta = ta,
                                .tb = tb,
                                .write = write};
  if (bias) call.bias = beta.as<T>();
  multiply(call);
  View const wide_a = bench.make(DType::f64, {a.shape[0], a.shape[1]}), wide_b = bench.make(DType::f64, {b.shape[0], b.shape[1]});
  View const exact = bench.make(DType::f64, {m, n});
  auto const reference = make_reference_backend();
  auto const stream = reference->stream();
  reference->run(*stream, Copy{a, wide_a});
  reference->run(*stream, Copy{b, wide_b});
  reference->run(*stream, Matmul{.a = wide_a, .b = wide_b, .c = exact, .ta = ta, .tb = tb, .bias = {}, .aux = {}});
  std::vector<double> const got = Workbench::values(c), product = Workbench::values(exact), added = Workbench::values(beta);
  for (std::size_t i = 0; i < got.size(); ++i) {
    double const wanted = product[i] + (bias ? added[i % std::size_t(n)] : 0) + (write == Write::accumulate ? before[i] : 0);
    ASSERT_NEAR(got[i], wanted, 4 * std::sqrt(double(k)) * 0x1p-24 * double(k) + 2 * unit_roundoff(out) * std::abs(wanted)) << i;
  }
}

constexpr Transpose either[] = {Transpose::no, Transpose::yes};

TEST(PackedMatmul, MakesTheProductInFp32) {
  for (Transpose const ta : either)
    for (Transpose const tb : either)
      for (Write const write : {Write::overwrite, Write::accumulate})
        expect_product<float, float>(ta, tb, write, false, [](auto const& call) { cpu::packed_matmul(call); });
}

TEST(PackedMatmul, MakesTheProductInBfloat16) {
  if (!cpu::library_has_bfloat16()) GTEST_SKIP() << "this processor doesn't multiply bf16";
  for (Transpose const ta : either)
    for (Transpose const tb : either) {
      for (bool const bias : {false, true}) {
        expect_product<bfloat16, bfloat16>(ta, tb, Write::overwrite, bias, [](auto const& call) { cpu::packed_matmul(call); });
        expect_product<bfloat16, bfloat16>(ta, tb, Write::overwrite, bias, [](auto const& call) { cpu::library_matmul(call); });
      }
      for (Write const write : {Write::overwrite, Write::accumulate}) {
        expect_product<bfloat16, float>(ta, tb, write, false, [](auto const& call) { cpu::packed_matmul(call); });
        expect_product<bfloat16, float>(ta, tb, write, false, [](auto const& call) { cpu::library_matmul(call); });
      }
    }
}

}  // namespace
}  // namespace shardmark
