// bf16 on the cpu backend: every operation within its rounding of the fp64 result, on every instruction set and by the library.

#include <array>
#include <bit>

#include "validation/unit/backend/within_rounding.hpp"
#include "workbench.hpp"

namespace shardmark {
namespace {

void expect_every_operation_within_rounding(Backend& cpu) {
  auto const reference = make_reference_backend();
  auto const stream = cpu.stream(), exact_stream = reference->stream();
  std::size_t compared = 0;
  for (cases::CaseSize const& size : cases::case_sizes()) {
    auto exact = cases::op_cases(DType::f64, size, 17, DType::bf16), narrow = cases::op_cases(DType::bf16, size, 17, DType::bf16);
    for (std::size_t i = 0; i < narrow.size(); ++i) {
      ASSERT_EQ(narrow[i].label, exact[i].label);
      auto const roundings = rounding_of(exact[i].op, *reference, *exact_stream);
      reference->run(*exact_stream, exact[i].op);
      cpu.run(*stream, narrow[i].op);
      cases::expect_within_rounding(narrow[i], exact[i], roundings, unit_roundoff(DType::bf16), unit_roundoff(DType::f32));
      EXPECT_TRUE(narrow[i].padding_intact()) << narrow[i].label;
      ++compared;
    }
  }
  EXPECT_GT(compared, 200u);
}

struct Bfloat16On : testing::OnInstructionSet {};

TEST_P(Bfloat16On, EveryOperationIsWithinItsRoundingOfTheExactResult) { expect_every_operation_within_rounding(*cpu); }

/// Every upper half with the lower halves at which rounding turns: all that rounding depends on. NaN and infinity are among them.
TEST_P(Bfloat16On, StoresAsTheScalarTypeRounds) {
  constexpr std::array<std::uint32_t, 6> lower{0, 1, 0x7fff, 0x8000, 0x8001, 0xffff};
  std::int64_t const n = std::int64_t(65536 * lower.size());
  View const from = bench.make(DType::f32, {n}), to = bench.make(DType::bf16, {n}), back = bench.make(DType::f32, {n});
  for (std::int64_t i = 0; i < n; ++i)
    from.as<float>()[i] = std::bit_cast<float>(std::uint32_t(i / std::int64_t(lower.size())) << 16 | lower[std::size_t(i) % lower.size()]);
  run(Copy{from, to});
  run(Copy{to, back});
  int differing = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    bfloat16 const wanted(from.as<float>()[i]);
    differing += to.as<bfloat16>()[i].bits != wanted.bits ? 1 : 0;
    differing += std::bit_cast<std::uint32_t>(back.as<float>()[i]) != std::uint32_t{wanted.bits} << 16 ? 1 : 0;
  }
  EXPECT_EQ(differing, 0);
}

/// The same from any place and in any length: tails are masked.
TEST_P(Bfloat16On, CastsOfAnyLengthTouchNothingElse) {
  for (std::int64_t const n : {0, 1, 3, 7, 8, 9, 15, 16, 17, 31, 33}) {
    View const from = bench.random(DType::f32, {n + 1}), to = bench.random(DType::bf16, {n + 2});
    View const before = bench.copy(to);
    run(Copy{slice(from, 0, 1, n + 1), slice(to, 0, 1, n + 1)});
    for (std::int64_t i = 0; i < n + 2; ++i) {
      bool const written = i > 0 && i <= n;
      EXPECT_EQ(to.as<bfloat16>()[i].bits, written ? bfloat16(from.as<float>()[i]).bits : before.as<bfloat16>()[i].bits)
          << i << " of " << n;
    }
  }
}

/// A NaN anywhere reaches what it is summed into.
TEST_P(Bfloat16On, NonFiniteNumbersAreSeen) {
  for (std::int64_t const at : {0, 7, 8, 16, 36}) {
    View const x = bench.random(DType::bf16, {37}), flag = bench.random(DType::f64, {1}, 0, 0);
    run(FlagNonFinite{x, flag});
    EXPECT_EQ(*flag.as<double>(), 0);
    x.as<bfloat16>()[at] = bfloat16(std::nanf(""));
    run(FlagNonFinite{x, flag});
    EXPECT_EQ(*flag.as<double>(), 1) << at;
  }
}

/// Sums grow in fp32: 256 ones would stay 256 from there on if they grew in bf16.
TEST_P(Bfloat16On, SumsGrowInFp32) {
  std::int64_t const n = 1000;
  View const ones = bench.random(DType::bf16, {n, 3}, 1, 1), sum = bench.make(DType::f32, {3});
  run(ColumnSum{ones, sum});
  EXPECT_EQ(testing::Workbench::values(sum), std::vector<double>(3, 1000));
  View const row = bench.random(DType::bf16, {1, n}, 1, 1), product = bench.make(DType::bf16, {1, 3});
  run(Matmul{.a = row, .b = ones, .c = product, .bias = {}, .aux = {}});
  EXPECT_EQ(testing::Workbench::values(product), std::vector<double>(3, 1000));
}

SHARDMARK_ON_EVERY_INSTRUCTION_SET(Bfloat16On);

/// The library's products where the processor has them, else the own kernels: the same bounds.
TEST(Bfloat16Library, EveryOperationIsWithinItsRoundingOfTheExactResult) {
  auto const cpu = make_cpu_backend(Determinism::fastest);
  expect_every_operation_within_rounding(*cpu);
}

}  // namespace
}  // namespace shardmark
