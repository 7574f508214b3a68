// Dropout has one mask on every backend and instruction set, at every size, and a shard's is the slice of the full tensor's.

#include <cmath>
#include <limits>

#include "workbench.hpp"

namespace shardmark {
namespace {

using testing::Workbench;

struct DropoutOn : testing::OnInstructionSet {};
constexpr DType every_type[] = {DType::f32, DType::f64, DType::bf16};

TEST_P(DropoutOn, HasTheReferencesBits) {
  // Lengths around a block of four words, a vector, and what is made at once.
  for (DType const type : every_type)
    for (std::int64_t const n : {0, 1, 3, 4, 5, 57, 255, 256, 257, 4095, 4097, 9001})
      for (double const p : {0.0, 0.1, 0.5, 1 - 0x1p-53}) {
        View const samples = bench.integers(DType::i64, {3, 2}, 0, 1 << 30);
        expect_like_reference(Dropout{.x = bench.random(type, {3, n}, -2, 2),
                                      .y = bench.make(type, {3, n}),
                                      .samples = samples,
                                      .p = p,
                                      .seed = 0x123456789abcdefull,
                                      .layer = 7},
                              "dropout of " + std::to_string(n), 0);
      }
}

TEST_P(DropoutOn, HasTheReferencesBitsInRowsWithGapsAndFarOut) {
  for (DType const type : every_type) {
    View const samples = bench.integers(DType::i64, {2, 2}, 0, 1000), x = bench.random(type, {2, 5, 57}, -2, 2, 3);
    Dropout op{.x = x, .y = bench.make(type, {2, 5, 57}, 6), .samples = samples, .p = 0.3, .seed = 5, .layer = 1};
    expect_like_reference(op, "rows with gaps", 0);
    // Beyond 2^32 blocks of four.
    op.full_width = (std::int64_t{1} << 34) + 3;
    op.first_element = op.full_width - 57;
    expect_like_reference(op, "elements above 2^34", 0);
  }
}

TEST_P(DropoutOn, AShardIsASliceOfTheFullTensor) {
  for (DType const type : every_type) {
    std::int64_t const width = 57;
    View const samples = bench.integers(DType::i64, {3, 2}, 0, 1000), x = bench.random(type, {3, 7, width}, 1, 2);
    Dropout const whole{.x = x, .y = bench.make(type, {3, 7, width}), .samples = samples, .p = 0.4, .seed = 9, .layer = 3};
    run(whole);
    for (auto const& [begin, end] : {std::pair{0, 19}, {19, 38}, {38, 57}, {5, 6}, {6, 6}}) {
      View const y = bench.make(type, {3, 7, end - begin});
      Dropout shard = whole;
      shard.x = slice(x, 2, begin, end);
      shard.y = y;
      shard.first_element = begin;
      shard.full_width = width;
      run(shard);
      testing::expect_same_bits(y, slice(whole.y, 2, begin, end), "a shard of dropout");
      // The check can fail: a shard that takes itself for the full tensor has another mask.
      if (begin == 0 || begin == end) continue;
      shard.first_element = shard.full_width = 0;
      run(shard);
      EXPECT_NE(Workbench::values(y), Workbench::values(bench.copy(slice(whole.y, 2, begin, end))));
    }
  }
}

TEST_P(DropoutOn, DropsWhatIsNotFiniteAndWorksInPlace) {
  float const inf = std::numeric_limits<float>::infinity();
  View const samples = bench.integers(DType::i64, {1, 2}, 0, 10), x = bench.make(DType::f32, {1, 300});
  for (std::int64_t i = 0; i < 300; ++i) x.as<float>()[i] = i % 3 == 0 ? -inf : i % 3 == 1 ? -1 : std::nanf("");
  Dropout op{.x = x, .y = bench.make(DType::f32, {1, 300}), .samples = samples, .p = 0.5};
  expect_like_reference(op, "dropout of infinities", 0);
  View const apart = op.y;
  op.y = x;
  run(op);
  testing::expect_same_bits(x, apart, "in place");
}

SHARDMARK_ON_EVERY_INSTRUCTION_SET(DropoutOn);

}  // namespace
}  // namespace shardmark
