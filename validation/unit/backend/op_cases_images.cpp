#include <fmt/format.h>

#include <algorithm>

#include "validation/unit/backend/op_cases.hpp"

namespace shardmark::cases {
namespace {

class ImageCases {
 public:
  ImageCases(DType type, DType grid, CaseSize size, std::uint64_t seed) : type_(type), grid_(grid), size_(size), seed_(seed) {}

  void convolutions() {
    for (SlidingWindow const& window : {SlidingWindow{3, 3, 1, 1}, SlidingWindow{2, 3, 2, 0}, SlidingWindow{1, 1, 1, 0}}) {
      std::int64_t const batch = size_.batch, height = size_.length, width = size_.width + 2, in = size_.heads;
      std::int64_t const out = std::min<std::int64_t>(size_.columns, 9), down = window.down(height), across = window.across(width);
      std::string const label = fmt::format("/{}x{}/{}/{}", window.height, window.width, window.stride, window.padding);
      CaseMaker forward = maker("convolution" + label);
      View const x = forward.numbers({batch, height, width, in}), w = forward.numbers({out, window.height, window.width, in});
      out_.push_back(forward.finish(Convolution{x, w, forward.numbers({batch, down, across, out}), window}));
      CaseMaker input = maker("convolution_input" + label);
      View const dy = input.numbers({batch, down, across, out}), v = input.numbers({out, window.height, window.width, in});
      out_.push_back(input.finish(ConvolutionInput{dy, v, input.numbers({batch, height, width, in}), window}));
      for (Write write : {Write::overwrite, Write::accumulate}) {
        CaseMaker weight = maker(fmt::format("convolution_weight{}/{}", label, int(write)));
        View const g = weight.numbers({batch, down, across, out}), images = weight.numbers({batch, height, width, in});
        View const dw = weight.numbers_as(weight.sum_type(), {out, window.height, window.width, in});
        out_.push_back(weight.finish(ConvolutionWeight{g, images, dw, window, write}));
      }
    }
  }

  void pools() {
    std::int64_t const batch = size_.batch, height = size_.length, width = size_.width + 2, channels = size_.columns;
    CaseMaker forward = maker("average_pool");
    View const x = forward.numbers({batch, height, width, channels}), y = forward.numbers({batch, height / 2, width / 3, channels});
    out_.push_back(forward.finish(AveragePool{x, y, 2, 3}));
    CaseMaker input = maker("average_pool_input");
    View const dy = input.numbers({batch, height / 2, width / 3, channels}), dx = input.numbers({batch, height, width, channels});
    out_.push_back(input.finish(AveragePoolInput{dy, dx, 2, 3}));
  }

  void statistics() {
    std::int64_t const channels = size_.columns;
    CaseMaker moments = maker("batch_moments");
    View const x = moments.numbers({size_.rows, channels}, size_.padding);
    out_.push_back(moments.finish(BatchMoments{x, moments.zeros_as(DType::f64, {1 + 2 * channels})}));

    CaseMaker merge = maker("merge_moments");
    View const pieces = merge.numbers_as(DType::f64, {4, 1 + 2 * channels});
    std::array<double, 4> const counts{0, 3, 0, 5};
    for (std::int64_t r = 0; r < 4; ++r) set_moments(slice(pieces, 0, r, r + 1), counts[std::size_t(r)]);
    View const merged = merge.zeros_as(DType::f64, {1 + 2 * channels}), mean = merge.numbers_as(merge.sum_type(), {channels});
    out_.push_back(merge.finish(MergeMoments{pieces, merged, mean, merge.numbers_as(merge.sum_type(), {channels})}));

    for (double n : {0, 1, 5}) {
      CaseMaker update = maker(fmt::format("running_update/{}", n));
      View const batch = update.numbers_as(DType::f64, {1 + 2 * channels});
      set_moments(batch, n);
      View const running = update.numbers_as(update.sum_type(), {channels}), variance = update.numbers_as(update.sum_type(), {channels});
      out_.push_back(update.finish(RunningUpdate{batch, running, variance, update.integers(DType::i64, {1}, 9)}));
    }
    CaseMaker inverse = maker("inverse_deviation");
    View const spread = positive(inverse.numbers_as(inverse.sum_type(), {channels}));
    out_.push_back(inverse.finish(InverseDeviation{spread, inverse.numbers_as(inverse.sum_type(), {channels})}));
  }

  void normalisations() {
    std::int64_t const rows = size_.rows, channels = size_.columns;
    CaseMaker forward = maker("batch_norm");
    auto const f = normalised(forward);
    View const gamma = forward.numbers({channels}), beta = forward.numbers({channels});
    out_.push_back(forward.finish(BatchNorm{f.x, f.mean, f.rstd, gamma, beta, forward.numbers({rows, channels}, size_.padding)}));
    for (Write write : {Write::overwrite, Write::accumulate}) {
      CaseMaker weight = maker(fmt::format("batch_norm_weight/{}", int(write)));
      auto const w = normalised(weight);
      View const dy = weight.numbers({rows, channels}), dgamma = weight.numbers_as(weight.sum_type(), {channels});
      out_.push_back(
          weight.finish(BatchNormWeight{dy, w.x, w.mean, w.rstd, dgamma, weight.numbers_as(weight.sum_type(), {channels}), write}));
    }
    for (bool in_place : {false, true}) {
      CaseMaker input = maker(in_place ? "batch_norm_input/in_place" : "batch_norm_input");
      auto const b = normalised(input);
      View const dy = input.numbers({rows, channels}, size_.padding), gain = input.numbers({channels});
      View const dgamma = input.numbers_as(input.sum_type(), {channels}), dbeta = input.numbers_as(input.sum_type(), {channels});
      View const moments = input.numbers_as(DType::f64, {1 + 2 * channels});
      set_moments(moments, double(rows + 3));
      View const dx = in_place ? dy : input.numbers({rows, channels});
      out_.push_back(input.finish(BatchNormInput{dy, b.x, gain, b.mean, b.rstd, dgamma, dbeta, moments, dx}));
    }
  }

  std::vector<OpCase> take() { return std::move(out_); }

 private:
  struct Normalised {
    View x, mean, rstd;
  };
  Normalised normalised(CaseMaker& make) const {
    View const x = make.numbers({size_.rows, size_.columns}, size_.padding), mean = make.numbers_as(make.sum_type(), {size_.columns});
    return {x, mean, positive(make.numbers_as(make.sum_type(), {size_.columns}))};
  }
  static View positive(View const& view) {
    std::vector<double> values = numbers_in(view);
    for (double& v : values) v = std::abs(v) + 0.25;
    CaseMaker::set(view, values);
    return view;
  }
  /// A count, and sums of squares that aren't negative. An empty piece has nothing.
  static void set_moments(View const& view, double count) {
    std::vector<double> values = numbers_in(view);
    values[0] = count;
    for (std::size_t i = 1; i < values.size(); ++i) {
      if (count == 0) values[i] = 0;
      if (i > values.size() / 2) values[i] = count > 1 ? std::abs(values[i]) : 0;
    }
    CaseMaker::set(view, values);
  }
  CaseMaker maker(std::string label) const { return {std::move(label), type_, grid_, seed_, size_}; }

  DType type_, grid_;
  CaseSize size_;
  std::uint64_t seed_;
  std::vector<OpCase> out_;
};

}  // namespace

std::vector<OpCase> image_cases(DType type, CaseSize size, std::uint64_t seed, DType grid) {
  ImageCases cases(type, grid, size, seed);
  cases.convolutions();
  cases.pools();
  cases.statistics();
  cases.normalisations();
  return cases.take();
}

}  // namespace shardmark::cases
