#pragma once
// What operations on images and batch statistics refuse; private to this folder.

#include "backend/validate_check.hpp"

namespace shardmark::validation {

struct Images {
  Check check;

  void operator()(Convolution const& o) const { convolution(o.x, o.w, o.y, o.window, check.number("x", o.x)); }
  void operator()(ConvolutionInput const& o) const { convolution(o.dx, o.w, o.dy, o.window, check.number("dy", o.dy)); }
  void operator()(ConvolutionWeight const& o) const {
    DType const type = check.number("x", o.x);
    check.typed("dw", o.dw, accumulator(type));
    convolution(o.x, o.dw, o.dy, o.window, type);
  }
  /// Images of `type`; w of `type` or, as a gradient, of its accumulator's.
  void convolution(View const& x, View const& w, View const& y, SlidingWindow const& window, DType type) const {
    check.that(window.height > 0 && window.width > 0 && window.stride > 0 && window.padding >= 0, "the window has no extent");
    image("x", x, type);
    image("y", y, type);
    check.view(bool(w) && w.rank == 4 && w.contiguous(), "w", w, "must be [outputs, height, width, channels]");
    check.view(w.dtype == type || w.dtype == accumulator(type), "w", w, "has the wrong type");
    check.shaped("w", w, w.dtype, {w.shape[0], window.height, window.width, x.shape[3]});
    check.shaped("y", y, type, {x.shape[0], window.down(x.shape[1]), window.across(x.shape[2]), w.shape[0]});
  }
  void operator()(AveragePool const& o) const { pool(o.x, o.y, o.height, o.width); }
  void operator()(AveragePoolInput const& o) const { pool(o.dx, o.dy, o.height, o.width); }
  void pool(View const& x, View const& y, std::int64_t height, std::int64_t width) const {
    DType const type = check.number("x", x);
    check.that(height > 0 && width > 0, "the window has no extent");
    image("x", x, type);
    image("y", y, type);
    check.shaped("y", y, type, {x.shape[0], x.shape[1] / height, x.shape[2] / width, x.shape[3]});
  }
  void image(std::string_view what, View const& v, DType type) const {
    check.typed(what, v, type);
    check.view(v.rank == 4 && v.contiguous(), what, v, "must be [batch, height, width, channels], contiguous");
  }

  void operator()(BatchMoments const& o) const {
    check.number("x", o.x);
    matrix("x", o.x);
    moments(o.moments, columns_of(o.x));
  }
  void operator()(MergeMoments const& o) const {
    DType const type = check.number("mean", o.mean);
    std::int64_t const channels = o.mean.elements();
    check.shaped("pieces", o.pieces, DType::f64, {o.pieces.shape[0], 1 + 2 * channels});
    check.that(o.pieces.contiguous() && o.pieces.shape[0] > 0, "there is at least one piece");
    moments(o.merged, channels);
    check.line("mean", o.mean, type, channels);
    check.line("rstd", o.rstd, type, channels);
  }
  void operator()(BatchNorm const& o) const {
    DType const type = check.number("x", o.x);
    matrix("x", o.x);
    check.like("y", o.y, o.x);
    statistics(o.x, o.mean, o.rstd);
    check.line("gamma", o.gamma, type, columns_of(o.x));
    check.line("beta", o.beta, type, columns_of(o.x));
  }
  void operator()(BatchNormWeight const& o) const {
    check.number("x", o.x);
    matrix("x", o.x);
    check.like("dy", o.dy, o.x);
    statistics(o.x, o.mean, o.rstd);
    statistics(o.x, o.dgamma, o.dbeta);
  }
  void operator()(BatchNormInput const& o) const {
    DType const type = check.number("x", o.x);
    matrix("x", o.x);
    check.like("dy", o.dy, o.x);
    check.like("dx", o.dx, o.x);
    check.line("gamma", o.gamma, type, columns_of(o.x));
    statistics(o.x, o.mean, o.rstd);
    statistics(o.x, o.dgamma, o.dbeta);
    moments(o.moments, columns_of(o.x));
  }
  void operator()(RunningUpdate const& o) const {
    DType const type = check.number("mean", o.mean);
    moments(o.moments, o.mean.elements());
    check.line("mean", o.mean, type, o.mean.elements());
    check.line("variance", o.variance, type, o.mean.elements());
    check.line("batches", o.batches, DType::i64, 1);
  }
  void operator()(InverseDeviation const& o) const {
    DType const type = check.number("variance", o.variance);
    check.line("variance", o.variance, type, o.variance.elements());
    check.line("rstd", o.rstd, type, o.variance.elements());
  }
  void matrix(std::string_view what, View const& v) const { check.view(v.rank == 2, what, v, "must be [positions, channels]"); }
  void moments(View const& v, std::int64_t channels) const { check.line("moments", v, DType::f64, 1 + 2 * channels); }
  /// Two lines of one number a channel, in the accumulator's type.
  void statistics(View const& x, View const& first, View const& second) const {
    check.line("the first statistic", first, accumulator(x.dtype), columns_of(x));
    check.line("the second statistic", second, accumulator(x.dtype), columns_of(x));
  }
};

}  // namespace shardmark::validation
