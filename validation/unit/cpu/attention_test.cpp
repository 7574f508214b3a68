// Tiled causal attention against the reference: lengths around the tile, odd widths, q, k and v side by side in one buffer.

#include "workbench.hpp"

namespace shardmark {
namespace {

using testing::Workbench;

struct AttentionOn : testing::OnInstructionSet {
  struct Heads {
    View q, k, v;
  };
  /// As a fused projection leaves them: [B,S,3,heads,d] seen as three [B,S,heads,d].
  Heads side_by_side(DType type, std::int64_t batch, std::int64_t length, std::int64_t heads, std::int64_t d, double size) {
    View const all = bench.random(type, {batch, length, 3 * heads, d}, -size, size);
    return {slice(all, 2, 0, heads), slice(all, 2, heads, 2 * heads), slice(all, 2, 2 * heads, 3 * heads)};
  }
};

constexpr std::int64_t lengths[] = {0, 1, 2, 33, 63, 64, 65, 130};

TEST_P(AttentionOn, EqualsReferenceWithinRounding) {
  for (DType const type : testing::floats)
    for (std::int64_t const length : lengths)
      for (std::int64_t const d : {1, 8, 17, 64}) {
        std::string const what = std::string(name(type)) + " " + std::to_string(length) + "x" + std::to_string(d);
        double const factor = 32 + 8 * std::sqrt(double(length + d));
        Heads const x = side_by_side(type, 2, length, 2, d, 2), g = side_by_side(type, 2, length, 2, d, 1);
        Attention const forward{
            x.q, x.k, x.v, bench.make(type, {2, length, 2, d}, 3), bench.make(type, {2, 2, length}), 1 / std::sqrt(double(d))};
        expect_like_reference(forward, "attention " + what, factor);
        run_reference(forward);
        AttentionInput const backward{x.q, x.k, x.v, forward.y,    forward.lse, bench.random(type, {2, length, 2, d}),
                                      g.q, g.k, g.v, forward.scale};
        expect_like_reference(backward, "attention_input " + what, 8 * factor);
      }
}

/// Scores of +-1000 overflow exp without the running maximum; it rises from tile to tile here.
TEST_P(AttentionOn, LargeScoresStayFinite) {
  std::int64_t const length = 200;
  View const q = bench.random(DType::f32, {1, length, 1, 4}, 9, 10), k = bench.random(DType::f32, {1, length, 1, 4}, 0, 1);
  for (std::int64_t s = 0; s < length; ++s)
    for (int j = 0; j < 4; ++j) k.as<float>()[s * 4 + j] += float(s) / 8;
  Attention const op{
      q, k, bench.random(DType::f32, {1, length, 1, 4}), bench.make(DType::f32, {1, length, 1, 4}), bench.make(DType::f32, {1, 1, length}),
      1};
  // Rounding of a score of 1,000 is an error of 1,000 u in the exponent.
  expect_like_reference(op, "large scores", 8000);
  for (double const y : Workbench::values(op.y)) ASSERT_TRUE(std::isfinite(y));
}

TEST_P(AttentionOn, LaterKeysHaveNoInfluence) {
  std::int64_t const length = 100, kept = 70;
  Heads const x = side_by_side(DType::f64, 1, length, 1, 16, 2);
  Attention const op{x.q, x.k, x.v, bench.make(DType::f64, {1, length, 1, 16}), bench.make(DType::f64, {1, 1, length}), 0.25};
  run(op);
  View const before = bench.copy(op.y);
  for (View const& v : {x.k, x.v})
    Workbench::each(slice(v, 1, kept, length), [](auto& value) { value = std::remove_reference_t<decltype(value)>(5); });
  run(op);
  testing::expect_same_bits(slice(op.y, 1, 0, kept), slice(before, 1, 0, kept), "queries before the change");
}

SHARDMARK_ON_EVERY_INSTRUCTION_SET(AttentionOn);

}  // namespace
}  // namespace shardmark
