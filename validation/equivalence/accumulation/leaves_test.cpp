// Sums of leaves in other orders and by other denominators, against numbers that a person can check.

#include "strategies/accumulation/leaves.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace shardmark::testing {
namespace {

constexpr double half_ulp = 0x1p-24;  // of 1 in fp32: added to 1 it is lost

/// One unit of one parameter.
ModelSpec one_parameter(std::int64_t elements, int slots = 1) {
  ModelSpec spec;
  UnitId const unit = spec.add_unit("u", slots);
  spec.add(unit, "w", {elements}, {}, true);
  return spec;
}

LeafSums sums(std::vector<Leaf> leaves, DType type = DType::f32) {
  return {type, one_parameter(std::int64_t(leaves.front().gradient.front().size())), {{UnitId{0}, 0}}, std::move(leaves)};
}

Leaf leaf(std::vector<double> gradient, std::int64_t counted = 1) { return {{std::move(gradient)}, counted}; }

using Values = std::vector<double>;

TEST(LeafSums, a_loop_loses_what_the_tree_keeps) {
  LeafSums const four = sums({leaf({1}), leaf({half_ulp}), leaf({half_ulp}), leaf({half_ulp})});
  EXPECT_EQ(four.tree().front(), Values{1 + 2 * half_ulp});  // (1 + h) + (h + h)
  EXPECT_EQ(four.loop().front(), Values{1});
  EXPECT_EQ(sums({leaf({1}), leaf({half_ulp}), leaf({half_ulp})}, DType::f64).loop().front(), Values{1 + 2 * half_ulp});
}

TEST(LeafSums, three_leaves_in_a_loop_are_the_tree) {
  LeafSums const three = sums({leaf({1, 3}), leaf({half_ulp, -1}), leaf({half_ulp, 5})});
  EXPECT_EQ(three.loop(), three.tree());
}

/// Three pieces of one element: their sums begin at leaves 1, 2 and 0.
TEST(LeafSums, a_ring_begins_each_piece_at_another_leaf) {
  LeafSums const three = sums({leaf({1, 1, 1}), leaf({half_ulp, half_ulp, half_ulp}), leaf({half_ulp, half_ulp, half_ulp})});
  EXPECT_EQ(three.ring().front(), (Values{1 + 2 * half_ulp, 1, 1}));
  EXPECT_EQ(three.tree().front(), (Values{1, 1, 1}));
}

/// Case 1: counts {1, 3}, losses {4; 0, 0, 0}. Each term moves the weight by its loss; leaves carry 1/4.
TEST(LeafSums, a_mean_of_means_weighs_terms_unequally) {
  LeafSums const ragged = sums({leaf({4 / 4.0}, 1), leaf({0}, 3)});
  EXPECT_EQ(ragged.tree().front(), Values{1});
  EXPECT_EQ(ragged.mean_of_means().front(), Values{2});
  EXPECT_FALSE(ragged.even());
}

TEST(LeafSums, a_mean_of_means_leaves_empty_pieces_out_and_is_right_for_equal_ones) {
  LeafSums const even = sums({leaf({2}, 2), leaf({3}, 2), leaf({0}, 0)});
  EXPECT_EQ(even.mean_of_means().front(), Values{5});
  EXPECT_TRUE(even.even());
}

/// Case 9: (2,0) + (0,2), largest norm 1.
TEST(LeafSums, clipping_in_each_micro_batch_turns_the_gradient) {
  LeafSums const two = sums({leaf({2, 0}), leaf({0, 2})}, DType::f64);
  ByUnit const once = two.clipped(two.tree(), 1), each = two.clipped_each_time(1);
  EXPECT_NEAR(once.front()[0], std::sqrt(0.5), 1e-6);
  EXPECT_NEAR(once.front()[1], std::sqrt(0.5), 1e-6);
  EXPECT_NEAR(each.front()[0], 1 / std::sqrt(5.0), 1e-6);
  EXPECT_NEAR(each.front()[1], 2 / std::sqrt(5.0), 1e-6);
  EXPECT_EQ(two.clipped(two.tree(), 3), two.tree());
}

TEST(LeafSums, slots_of_a_tied_unit_are_added_last) {
  std::vector<Segment> const order{{UnitId{0}, 1}, {UnitId{0}, 0}};  // as backward completes them
  Leaf const a{{{half_ulp}, {1}}, 1}, b{{{half_ulp}, {0}}, 1};
  LeafSums const tied(DType::f32, one_parameter(1, 2), order, {a, b});
  EXPECT_EQ(tied.loop().front(), Values{1 + 2 * half_ulp});  // (1 + 0) + (h + h)
}

TEST(Deviations, counts_bits_and_leaves_null_gradients_out_of_the_size) {
  ModelSpec spec = one_parameter(3);
  Deviation const found = deviation({{1, 0.0, 5}}, {{1, -0.0, 4}}, spec);
  EXPECT_EQ(found, (Deviation{2, 3, 0.25}));
  spec.params[0].null_gradient = true;
  EXPECT_EQ(deviation({{1, 0.0, 5}}, {{1, -0.0, 4}}, spec), (Deviation{2, 3, 0}));
  EXPECT_EQ(deviation({{1, 2, 3}}, {{1, 2, 3}}, spec), (Deviation{0, 3, 0}));
}

}  // namespace
}  // namespace shardmark::testing
