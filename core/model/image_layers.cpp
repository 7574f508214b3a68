#include "model/image_layers.hpp"

namespace shardmark {
namespace {

/// The matrix of images as [rows, height, width, C].
View as_images(View const& matrix, std::int64_t height, std::int64_t width) {
  return reshape(matrix, {matrix.shape[0] / (height * width), height, width, matrix.shape[1]});
}

}  // namespace

// ---- ChannelsLast

Tensor ChannelsLast::forward(Tensor x, Context& context, Stash&) {
  std::int64_t const rows = x.view.shape[0];
  if (image_.channels == 1) return with_view(x, reshape(x.view, {rows * image_.pixels(), 1}));
  Tensor y = context.make(x.view.dtype, {rows * image_.pixels(), image_.channels});
  View planes = reshape(x.view, {rows, image_.height, image_.width, image_.channels});
  planes.stride = {image_.elements(), image_.width, 1, image_.pixels()};
  context.run(Copy{planes, as_images(y.view, image_.height, image_.width)});
  return y;
}

Tensor ChannelsLast::backward(Tensor, Context&, Stash&, Wanted) { return {}; }

// ---- Convolve

View Convolve::input(View const& x) const { return as_images(x, input_.height, input_.width); }
View Convolve::output(View const& y) const { return as_images(y, window_.down(input_.height), window_.across(input_.width)); }

Tensor Convolve::forward(Tensor x, Context& context, Stash& stash) {
  View const w = context.store.weight(weight_, context.version);
  View const images = input(x.view);
  Tensor y = context.make(x.view.dtype, {images.shape[0] * window_.down(input_.height) * window_.across(input_.width), w.shape[0]});
  context.run(Convolution{images, w, output(y.view), window_});
  stash.save(first_, x, Until::weight);
  return y;
}

Tensor Convolve::backward(Tensor dy, Context& context, Stash& stash, Wanted wanted) {
  auto& store = context.store;
  View const x = stash[first_].view;
  Tensor dx;
  if (wants_input(wanted)) {
    if (from_ == InputIs::activation) {
      dx = context.make(dy.view.dtype, {x.shape[0], x.shape[1]});
      context.run(ConvolutionInput{output(dy.view), store.weight(weight_, context.version), input(dx.view), window_});
    }
    stash.save(first_ + 1, dy, Until::weight);
  }
  if (wants_weight(wanted))
    context.run(ConvolutionWeight{output(stash[first_ + 1].view), input(x), store.gradient(weight_, 1, 0), window_,
                                  store.gradient_write(weight_, 0)});
  return dx;
}

// ---- Rectify

Tensor Rectify::forward(Tensor x, Context& context, Stash& stash) {
  context.run(Relu{x.view, x.view});
  stash.save(first_, x, Until::input);
  return x;
}

Tensor Rectify::backward(Tensor dy, Context& context, Stash& stash, Wanted wanted) {
  if (!wants_input(wanted)) return {};
  context.run(ReluInput{stash[first_].view, dy.view, dy.view});
  return dy;
}

// ---- Pool

Tensor Pool::forward(Tensor x, Context& context, Stash&) {
  View const images = as_images(x.view, input_.height, input_.width);
  std::int64_t const down = input_.height / height_, across = input_.width / width_;
  Tensor y = context.make(x.view.dtype, {images.shape[0] * down * across, x.view.shape[1]});
  context.run(AveragePool{images, as_images(y.view, down, across), height_, width_});
  return y;
}

Tensor Pool::backward(Tensor dy, Context& context, Stash&, Wanted wanted) {
  if (!wants_input(wanted)) return {};
  View const gradients = as_images(dy.view, input_.height / height_, input_.width / width_);
  Tensor dx = context.make(dy.view.dtype, {gradients.shape[0] * input_.pixels(), dy.view.shape[1]});
  context.run(AveragePoolInput{gradients, as_images(dx.view, input_.height, input_.width), height_, width_});
  return dx;
}

}  // namespace shardmark
