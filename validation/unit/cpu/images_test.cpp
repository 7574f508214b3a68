// Convolutions, pooling and batch normalisation against the reference, on every instruction set.

#include "workbench.hpp"

namespace shardmark {
namespace {

using testing::Workbench;

struct Shape4 {
  std::int64_t batch, height, width, channels, outputs;
};
/// One pixel, odd, empty, and more positions than one block of unfolded windows holds.
constexpr Shape4 shapes[] = {{1, 1, 1, 1, 1}, {2, 5, 7, 3, 5}, {0, 4, 4, 2, 3}, {3, 2, 9, 1, 17}, {3, 16, 16, 17, 4}};
constexpr SlidingWindow windows[] = {{3, 3, 1, 1}, {1, 1, 1, 0}, {2, 3, 2, 1}, {5, 5, 1, 2}};

struct ImagesOn : testing::OnInstructionSet {};

TEST_P(ImagesOn, Convolutions) {
  for (DType const type : testing::floats)
    for (Shape4 const& s : shapes)
      for (SlidingWindow const& window : windows) {
        std::int64_t const down = window.down(s.height), across = window.across(s.width);
        View const x = bench.random(type, {s.batch, s.height, s.width, s.channels});
        View const w = bench.random(type, {s.outputs, window.height, window.width, s.channels});
        View const dy = bench.random(type, {s.batch, down, across, s.outputs});
        std::string const what = std::to_string(s.height) + "x" + std::to_string(s.channels) + " by " + std::to_string(window.height);
        double const depth = double(window.elements(s.channels)), positions = double(s.batch * down * across);
        expect_like_reference(Convolution{x, w, bench.copy(dy), window}, "forward " + what, 4 * depth);
        expect_like_reference(ConvolutionInput{dy, w, bench.copy(x), window}, "input " + what, 4 * double(window.elements(s.outputs)));
        for (Write write : {Write::overwrite, Write::accumulate})
          expect_like_reference(ConvolutionWeight{dy, x, bench.copy(w), window, write}, "weight " + what, 4 * (positions + 1));
      }
}

/// In deterministic mode the bits of an image don't depend on the batch that it is in.
TEST_P(ImagesOn, ConvolutionsDontSeeTheSplitOfTheBatch) {
  SlidingWindow const window{3, 3, 1, 1};
  for (DType const type : testing::floats) {
    View const x = bench.random(type, {5, 16, 16, 17}), w = bench.random(type, {7, 3, 3, 17});
    View const y = bench.random(type, {5, 16, 16, 7}), dx = bench.copy(x);
    run(Convolution{x, w, y, window});
    run(ConvolutionInput{y, w, dx, window});
    for (std::int64_t cut : {1, 2, 4}) {
      View const parts = bench.copy(y), dparts = bench.copy(x);
      auto const piece = [](View const& v, std::int64_t from, std::int64_t to) { return slice(v, 0, from, to); };
      for (auto const& [from, to] : {std::pair<std::int64_t, std::int64_t>{0, cut}, {cut, 5}}) {
        run(Convolution{piece(x, from, to), w, piece(parts, from, to), window});
        run(ConvolutionInput{piece(y, from, to), w, piece(dparts, from, to), window});
      }
      testing::expect_same_bits(parts, y, "forward");
      testing::expect_same_bits(dparts, dx, "input");
    }
  }
}

TEST_P(ImagesOn, Pools) {
  for (DType const type : testing::floats)
    for (Shape4 const& s : shapes) {
      View const x = bench.random(type, {s.batch, s.height, s.width, s.channels});
      View const y = bench.random(type, {s.batch, s.height / 2, s.width / 3, s.channels});
      expect_like_reference(AveragePool{x, bench.copy(y), 2, 3}, "pool", 0);
      expect_like_reference(AveragePoolInput{y, bench.copy(x), 2, 3}, "pool gradient", 0);
    }
}

TEST_P(ImagesOn, BatchNormalisation) {
  for (DType const type : testing::floats)
    for (std::int64_t const rows : {0, 1, 5, 65, 300})
      for (std::int64_t const n : {1, 3, 16, 1100}) {
        std::string const what = std::to_string(rows) + "x" + std::to_string(n);
        View const x = bench.random(type, {rows, n}, -2, 3, 2), dy = bench.random(type, {rows, n});
        View const moments = bench.make(DType::f64, {1 + 2 * n}), mean = bench.make(type, {n}), rstd = bench.make(type, {n});
        run(BatchMoments{x, moments});
        View const expected = bench.copy(moments);
        run_reference(BatchMoments{x, expected});
        testing::expect_near(moments, expected, "moments " + what,
                             [&](std::size_t) { return 64 * unit_roundoff(type) * double(1 + rows); });
        expect_like_reference(MergeMoments{reshape(moments, {1, 1 + 2 * n}), bench.copy(moments), mean, rstd}, "merge " + what, 0);
        View const gamma = bench.random(type, {n}), beta = bench.random(type, {n});
        expect_like_reference(BatchNorm{x, mean, rstd, gamma, beta, bench.copy(dy)}, "normalise " + what, 0);
        View const dgamma = bench.random(type, {n}), dbeta = bench.random(type, {n});
        for (Write write : {Write::accumulate, Write::overwrite})
          expect_like_reference(BatchNormWeight{dy, x, mean, rstd, dgamma, dbeta, write}, "weight " + what, 8.0 * double(rows + 1));
        expect_like_reference(BatchNormInput{dy, x, gamma, mean, rstd, dgamma, dbeta, moments, bench.copy(dy)}, "input " + what, 16);
      }
}

SHARDMARK_ON_EVERY_INSTRUCTION_SET(ImagesOn);

}  // namespace
}  // namespace shardmark
