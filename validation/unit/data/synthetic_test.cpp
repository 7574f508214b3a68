#include <gtest/gtest.h>

#include <map>
#include <set>

#include "fixtures.hpp"

namespace shardmark {
namespace {

using test::values;

struct TokenSample {
  std::vector<std::int32_t> input, target;
};

TokenSample read(Dataset const& data, std::int64_t sample) {
  std::vector<std::byte> input(std::size_t(data.shape().input[0]) * 4), target(input.size());
  data.read(sample, input, target);
  return {values<std::int32_t>(input), values<std::int32_t>(target)};
}

TEST(SyntheticTokens, TargetsAreTheNextInputs) {
  auto const data = make_synthetic_tokens(1, 10, 16, 61, Ragged::no);
  for (std::int64_t i = 0; i < data->size(); ++i) {
    auto const [input, target] = read(*data, i);
    for (std::size_t s = 0; s + 1 < input.size(); ++s) EXPECT_EQ(target[s], input[s + 1]);
    for (std::int32_t token : input) EXPECT_TRUE(token >= 0 && token < 61);
  }
}

TEST(SyntheticTokens, RaggedCountsAreTheValidTargets) {
  auto const data = make_synthetic_tokens(1, 200, 9, 61, Ragged::yes);
  std::set<std::int64_t> lengths;
  for (std::int64_t i = 0; i < data->size(); ++i) {
    auto const target = read(*data, i).target;
    std::int64_t const counted = data->counted(i);
    lengths.insert(counted);
    for (std::size_t s = 0; s < target.size(); ++s) EXPECT_EQ(target[s] == -1, std::int64_t(s) >= counted);
  }
  EXPECT_EQ(lengths, (std::set<std::int64_t>{4, 5, 6, 7, 8, 9}));
}

// A model can learn it: the most frequent follower of a token comes at least three times out of four.
TEST(SyntheticTokens, FollowALearnableRule) {
  auto const data = make_synthetic_tokens(7, 200, 64, 32, Ragged::no);
  std::map<std::int32_t, std::map<std::int32_t, int>> followers;
  int pairs = 0, most_frequent = 0;
  for (std::int64_t i = 0; i < data->size(); ++i) {
    auto const [input, target] = read(*data, i);
    for (std::size_t s = 0; s < input.size(); ++s, ++pairs) ++followers[input[s]][target[s]];
  }
  for (auto const& [token, counts] : followers) {
    int best = 0;
    for (auto const& [next, count] : counts) best = std::max(best, count);
    most_frequent += best;
  }
  EXPECT_GT(double(most_frequent) / pairs, 0.72);
  EXPECT_LT(double(most_frequent) / pairs, 0.90);
}

TEST(SyntheticTokens, DependOnSeedAndSample) {
  auto const a = make_synthetic_tokens(1, 10, 32, 61, Ragged::no), b = make_synthetic_tokens(1, 99, 32, 61, Ragged::no),
             c = make_synthetic_tokens(2, 10, 32, 61, Ragged::no);
  EXPECT_EQ(read(*a, 3).input, read(*b, 3).input);
  EXPECT_NE(read(*a, 3).input, read(*a, 4).input);
  EXPECT_NE(read(*a, 3).input, read(*c, 3).input);
}

TEST(SyntheticTokens, SmallestShapes) {
  auto const data = make_synthetic_tokens(1, 1, 1, 1, Ragged::yes);
  EXPECT_EQ(read(*data, 0).input, std::vector<std::int32_t>{0});
  EXPECT_EQ(data->counted(0), 1);
}

TEST(SyntheticImages, AreTheSameVectorsWithAShape) {
  auto const images = make_synthetic_images(3, 8, {2, 3, 4}, 5), vectors = make_synthetic_vectors(3, 8, {24}, 5);
  EXPECT_EQ(images->shape().image, (std::array<std::int64_t, 3>{2, 3, 4}));
  EXPECT_EQ(images->shape().input, vectors->shape().input);
  std::vector<std::byte> a(96), b(96), target(4);
  images->read(7, a, target);
  vectors->read(7, b, target);
  EXPECT_EQ(a, b);
}

TEST(SyntheticVectors, HaveUnitVarianceAndAllLabels) {
  auto const data = make_synthetic_vectors(3, 500, {4, 5}, 7);
  EXPECT_EQ(data->shape().input, (std::vector<std::int64_t>{4, 5}));
  std::vector<std::byte> input(80), target(4);
  double sum = 0, squares = 0;
  std::set<std::int32_t> labels;
  for (std::int64_t i = 0; i < data->size(); ++i) {
    data->read(i, input, target);
    for (float x : values<float>(input)) {
      sum += x;
      squares += double(x) * x;
    }
    labels.insert(values<std::int32_t>(target)[0]);
  }
  EXPECT_NEAR(sum / 10000, 0, 0.05);
  EXPECT_NEAR(squares / 10000, 1, 0.08);
  EXPECT_EQ(labels, (std::set<std::int32_t>{0, 1, 2, 3, 4, 5, 6}));
}

// Regression: the target is a fixed linear function, so it adds up.
TEST(SyntheticVectors, RegressionTargetsAreLinear) {
  auto const data = make_synthetic_vectors(3, 8, {3}, 0);
  EXPECT_EQ(data->shape().target_type, DType::f32);
  std::vector<std::vector<float>> x(4);
  std::vector<double> y(4);
  for (std::size_t i = 0; i < 4; ++i) {
    std::vector<std::byte> input(12), target(4);
    data->read(std::int64_t(i), input, target);
    x[i] = values<float>(input);
    y[i] = values<float>(target)[0];
  }
  // Four points in three dimensions are dependent: c0 x0 + c1 x1 + c2 x2 = x3 by Cramer's rule, hence also for y.
  auto determinant = [](std::vector<float> const& a, std::vector<float> const& b, std::vector<float> const& c) {
    return double(a[0]) * (double(b[1]) * c[2] - double(b[2]) * c[1]) - double(a[1]) * (double(b[0]) * c[2] - double(b[2]) * c[0]) +
           double(a[2]) * (double(b[0]) * c[1] - double(b[1]) * c[0]);
  };
  double const all = determinant(x[0], x[1], x[2]);
  double const combined =
      (determinant(x[3], x[1], x[2]) * y[0] + determinant(x[0], x[3], x[2]) * y[1] + determinant(x[0], x[1], x[3]) * y[2]) / all;
  EXPECT_NEAR(combined, y[3], 1e-4);
}

}  // namespace
}  // namespace shardmark
