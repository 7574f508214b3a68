// Backward passes against central differences of their forwards, in fp64.
//
// L(x) = <w, y(x)> with random w; dL along a random direction d is (L(x + e d) - L(x - e d)) / 2e + O(e^2), and must be <dx, d>.

#include <gtest/gtest.h>

#include <functional>

#include "backend/decorators/dense.hpp"
#include "base/random.hpp"

namespace shardmark {
namespace {

double inner_product(Dense const& a, Dense const& b) {
  double sum = 0;
  for (std::int64_t i = 0; i < a.elements(); ++i) sum += a[i] * b[i];
  return sum;
}

class Gradients : public testing::Test {
 protected:
  Dense random(std::initializer_list<std::int64_t> shape) {
    Dense out(shape);
    Randoms const normals(1, Purpose::synthetic_data, next_++);
    for (std::int64_t i = 0; i < out.elements(); ++i) out[i] = normals.normal(std::uint64_t(i));
    return out;
  }
  /// `loss` must use `x`, which is moved and put back.
  void expect_gradient(std::function<double()> const& loss, Dense& x, Dense const& dx, char const* of) {
    Dense const here = x;
    for (int attempt = 0; attempt < 3; ++attempt) {
      Randoms const normals(2, Purpose::synthetic_data, next_++);
      double along = 0, scale = 0;
      std::vector<double> direction;
      for (std::int64_t i = 0; i < x.elements(); ++i) {
        direction.push_back(normals.normal(std::uint64_t(i)));
        along += dx[i] * direction.back();
        scale += std::abs(dx[i] * direction.back());
      }
      auto at = [&](double e) {
        for (std::int64_t i = 0; i < x.elements(); ++i) x[i] = here[i] + e * direction[std::size_t(i)];
        return loss();
      };
      // Error e^2 L'''/6 + 2^-53 |L| / e: both near 1e-10.
      double const e = 1e-5, difference = (at(e) - at(-e)) / (2 * e);
      x = here;
      EXPECT_NEAR(difference, along, 1e-6 * scale) << of;
      EXPECT_GT(scale, 0) << of;
    }
  }

  std::unique_ptr<Backend> backend = make_reference_backend();
  HostStream stream{0};
  Bench bench{*backend, stream};

 private:
  std::uint64_t next_ = 0;
};

TEST_F(Gradients, Matmul) {
  Dense x = random({5, 4}), w = random({3, 4}), bias = random({3}), dy = random({5, 3});
  auto loss = [&] {
    Dense y{5, 3};
    bench.run(Matmul{
        .a = x.view(), .b = w.view(), .c = y.view(), .tb = Transpose::yes, .epilogue = Epilogue::bias, .bias = bias.view(), .aux = {}});
    return inner_product(y, dy);
  };
  Dense dx = bench.multiply(dy, Transpose::no, w, Transpose::no), dw = bench.multiply(dy, Transpose::yes, x, Transpose::no), db{3};
  bench.run(ColumnSum{dy.view(), db.view()});
  expect_gradient(loss, x, dx, "dx");
  expect_gradient(loss, w, dw, "dw");
  expect_gradient(loss, bias, db, "db");
}

TEST_F(Gradients, BiasGelu) {
  Dense x = random({5, 4}), w = random({4, 3}), bias = random({3}), dy = random({5, 3}), aux{5, 3};
  auto loss = [&] {
    Dense y{5, 3};
    bench.run(Matmul{.a = x.view(), .b = w.view(), .c = y.view(), .epilogue = Epilogue::bias_gelu, .bias = bias.view(), .aux = aux.view()});
    return inner_product(y, dy);
  };
  loss();
  Dense dz{5, 3};
  bench.run(GeluInput{aux.view(), dy.view(), dz.view()});
  expect_gradient(loss, x, bench.multiply(dz, Transpose::no, w, Transpose::yes), "dx");
}

TEST_F(Gradients, LayerNorm) {
  Dense x = random({6, 7}), gamma = random({7}), beta = random({7}), dy = random({6, 7}), mean{6}, rstd{6};
  auto loss = [&] {
    Dense y{6, 7};
    bench.run(LayerNorm{x.view(), gamma.view(), beta.view(), y.view(), mean.view(), rstd.view()});
    return inner_product(y, dy);
  };
  loss();
  Dense dx{6, 7}, dgamma{7}, dbeta{7};
  bench.run(LayerNormInput{dy.view(), x.view(), gamma.view(), mean.view(), rstd.view(), dx.view()});
  bench.run(LayerNormWeight{dy.view(), x.view(), mean.view(), rstd.view(), dgamma.view(), dbeta.view()});
  expect_gradient(loss, x, dx, "dx");
  expect_gradient(loss, gamma, dgamma, "dgamma");
  expect_gradient(loss, beta, dbeta, "dbeta");
}

TEST_F(Gradients, Activations) {
  Dense x = random({6, 7}), dy = random({6, 7}), y{6, 7}, dx{6, 7};
  bench.run(GeluInput{x.view(), dy.view(), dx.view()});
  expect_gradient([&] { return bench.run(Gelu{x.view(), y.view()}), inner_product(y, dy); }, x, dx, "gelu");
  bench.run(Relu{x.view(), y.view()});
  bench.run(ReluInput{y.view(), dy.view(), dx.view()});
  expect_gradient([&] { return bench.run(Relu{x.view(), y.view()}), inner_product(y, dy); }, x, dx, "relu");
  std::vector<std::int64_t> samples(12, 3);
  View const keys = view_at(reinterpret_cast<std::byte*>(samples.data()), nullptr, DType::i64, std::array<std::int64_t, 2>{6, 2});
  bench.run(Dropout{dy.view(), dx.view(), keys, 0.4, 1, 2});
  expect_gradient([&] { return bench.run(Dropout{x.view(), y.view(), keys, 0.4, 1, 2}), inner_product(y, dy); }, x, dx, "dropout");
}

TEST_F(Gradients, Attention) {
  Dense q = random({2, 5, 3, 4}), k = random({2, 5, 3, 4}), v = random({2, 5, 3, 4}), dy = random({2, 5, 3, 4});
  Dense y(q.view().dims()), lse{2, 3, 5}, dq(q.view().dims()), dk(q.view().dims()), dv(q.view().dims());
  auto loss = [&] {
    bench.run(Attention{q.view(), k.view(), v.view(), y.view(), lse.view(), 0.5});
    return inner_product(y, dy);
  };
  loss();
  bench.run(AttentionInput{q.view(), k.view(), v.view(), y.view(), lse.view(), dy.view(), dq.view(), dk.view(), dv.view(), 0.5});
  expect_gradient(loss, q, dq, "dq");
  expect_gradient(loss, k, dk, "dk");
  expect_gradient(loss, v, dv, "dv");
}

TEST_F(Gradients, AttentionIsCausal) {
  Dense q = random({1, 6, 1, 3}), k = random({1, 6, 1, 3}), v = random({1, 6, 1, 3}), y(q.view().dims()), lse{1, 1, 6};
  bench.run(Attention{q.view(), k.view(), v.view(), y.view(), lse.view()});
  Dense const before = y;
  for (std::int64_t c = 0; c < 3; ++c) k[4 * 3 + c] += 1, v[4 * 3 + c] += 1;
  bench.run(Attention{q.view(), k.view(), v.view(), y.view(), lse.view()});
  for (std::int64_t i = 0; i < 4 * 3; ++i) EXPECT_EQ(y[i], before[i]);
  for (std::int64_t i = 4 * 3; i < 6 * 3; ++i) EXPECT_NE(y[i], before[i]);
}

TEST_F(Gradients, Embedding) {
  Dense table = random({7, 4}), positions = random({5, 4}), dy = random({2, 3, 4}), dtable{7, 4}, dpositions{5, 4};
  std::vector<std::int32_t> tokens{1, 6, 1, 0, 1, 3};
  View const ids = view_at(reinterpret_cast<std::byte*>(tokens.data()), nullptr, DType::i32, std::array<std::int64_t, 2>{2, 3});
  auto loss = [&] {
    Dense y{2, 3, 4};
    bench.run(Embedding{ids, table.view(), positions.view(), y.view()});
    return inner_product(y, dy);
  };
  bench.run(EmbeddingWeight{ids, dy.view(), dtable.view()});
  bench.run(PositionWeight{dy.view(), dpositions.view()});
  expect_gradient(loss, table, dtable, "dtable");
  expect_gradient(loss, positions, dpositions, "dpositions");
}

TEST_F(Gradients, Convolution) {
  for (SlidingWindow const& window : {SlidingWindow{3, 3, 1, 1}, SlidingWindow{2, 3, 2, 1}, SlidingWindow{1, 2, 3, 0}}) {
    Dense x = random({2, 5, 6, 3}), w = random({4, window.height, window.width, 3});
    std::int64_t const down = window.down(5), across = window.across(6);
    Dense dy = random({2, down, across, 4}), dx(x.view().dims()), dw(w.view().dims());
    auto loss = [&] {
      Dense y(dy.view().dims());
      bench.run(Convolution{x.view(), w.view(), y.view(), window});
      return inner_product(y, dy);
    };
    bench.run(ConvolutionInput{dy.view(), w.view(), dx.view(), window});
    bench.run(ConvolutionWeight{dy.view(), x.view(), dw.view(), window});
    expect_gradient(loss, x, dx, "dx");
    expect_gradient(loss, w, dw, "dw");
  }
}

TEST_F(Gradients, AveragePool) {
  Dense x = random({2, 5, 7, 3}), dy = random({2, 2, 2, 3}), dx(x.view().dims());
  bench.run(AveragePoolInput{dy.view(), dx.view(), 2, 3});
  auto loss = [&] {
    Dense y(dy.view().dims());
    bench.run(AveragePool{x.view(), y.view(), 2, 3});
    return inner_product(y, dy);
  };
  expect_gradient(loss, x, dx, "dx");
}

/// In two pieces of 2 and 5 rows, whose statistics are merged: the gradient of each piece depends on the other.
TEST_F(Gradients, BatchNormOfMergedPieces) {
  constexpr std::int64_t channels = 3, cut = 2, rows = 7;
  Dense x = random({rows, channels}), gamma = random({channels}), beta = random({channels}), dy = random({rows, channels});
  Dense pieces{2, 1 + 2 * channels}, merged{1 + 2 * channels}, mean{channels}, rstd{channels};
  auto const parts = [&](Dense& whole) { return std::array{slice(whole.view(), 0, 0, cut), slice(whole.view(), 0, cut, rows)}; };
  auto loss = [&] {
    Dense y{rows, channels};
    for (std::int64_t p = 0; p < 2; ++p)
      bench.run(BatchMoments{parts(x)[std::size_t(p)], reshape(slice(pieces.view(), 0, p, p + 1), {1 + 2 * channels})});
    bench.run(MergeMoments{pieces.view(), merged.view(), mean.view(), rstd.view()});
    for (std::size_t p = 0; p < 2; ++p) bench.run(BatchNorm{parts(x)[p], mean.view(), rstd.view(), gamma.view(), beta.view(), parts(y)[p]});
    return inner_product(y, dy);
  };
  loss();
  Dense dgamma{channels}, dbeta{channels}, dx{rows, channels};
  for (std::size_t p = 0; p < 2; ++p)
    bench.run(BatchNormWeight{parts(dy)[p], parts(x)[p], mean.view(), rstd.view(), dgamma.view(), dbeta.view(),
                              p == 0 ? Write::overwrite : Write::accumulate});
  for (std::size_t p = 0; p < 2; ++p)
    bench.run(BatchNormInput{parts(dy)[p], parts(x)[p], gamma.view(), mean.view(), rstd.view(), dgamma.view(), dbeta.view(), merged.view(),
                             parts(dx)[p]});
  expect_gradient(loss, x, dx, "dx");
  expect_gradient(loss, gamma, dgamma, "dgamma");
  expect_gradient(loss, beta, dbeta, "dbeta");
}

TEST_F(Gradients, Losses) {
  Dense x = random({6, 7}), target = random({6, 7}), dx{6, 7};
  std::vector<std::int32_t> classes{0, 6, -1, 3, 3, 5};
  View const wanted = view_at(reinterpret_cast<std::byte*>(classes.data()), nullptr, DType::i32, std::array<std::int64_t, 1>{6});
  Dense tally{3};
  bench.run(CrossEntropy{x.view(), wanted, tally.view(), dx.view(), 0.125});
  auto cross_entropy = [&] {
    Dense sums{3};
    bench.run(CrossEntropy{x.view(), wanted, sums.view(), {}});
    return 0.125 * sums[0];
  };
  expect_gradient(cross_entropy, x, dx, "cross_entropy");
  bench.run(SquaredError{x.view(), target.view(), tally.view(), dx.view(), 0.125});
  auto squared = [&] {
    Dense sums{3};
    bench.run(SquaredError{x.view(), target.view(), sums.view(), {}});
    return 0.125 * sums[0];
  };
  expect_gradient(squared, x, dx, "squared_error");
}

}  // namespace
}  // namespace shardmark
