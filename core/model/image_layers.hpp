#pragma once
// Layers on images. A tensor of images is the matrix [T,C], T = rows x height x width: channels last, as the operations take them.

#include "model/layer.hpp"

namespace shardmark {

struct ImageShape {
  std::int64_t channels = 3, height = 16, width = 16;
  std::int64_t pixels() const { return height * width; }
  std::int64_t elements() const { return channels * height * width; }
};

/// Samples as data files have them, [rows, C x H x W], plane after plane -> [T,C]. The model's input: no gradient.
class ChannelsLast final : public Layer {
 public:
  explicit ChannelsLast(ImageShape image) : image_(image) {}
  Tensor forward(Tensor x, Context& context, Stash& stash) override;
  Tensor backward(Tensor dy, Context& context, Stash& stash, Wanted wanted) override;

 private:
  ImageShape image_;
};

/// Convolution without bias: [rows H W, C] -> [rows OH OW, O]. weight [O, height, width, C]: PyTorch's [O, C, height, width] in its
/// channels_last format. Of data, no input gradient is made.
class Convolve final : public Layer {
 public:
  static constexpr std::size_t slots = 2;  // x (weight), dy (weight, split backward)
  Convolve(ParamId weight, ImageShape input, SlidingWindow window, InputIs from, std::size_t first_slot)
      : weight_(weight), input_(input), window_(window), from_(from), first_(first_slot) {}
  Tensor forward(Tensor x, Context& context, Stash& stash) override;
  Tensor backward(Tensor dy, Context& context, Stash& stash, Wanted wanted) override;

 private:
  View input(View const& x) const;
  View output(View const& y) const;
  ParamId weight_;
  ImageShape input_;
  SlidingWindow window_;
  InputIs from_;
  std::size_t first_;
};

/// y = max(x, 0) in the memory of x; backward writes over dy.
class Rectify final : public Layer {
 public:
  static constexpr std::size_t slots = 1;  // y (input)
  explicit Rectify(std::size_t first_slot) : first_(first_slot) {}
  Tensor forward(Tensor x, Context& context, Stash& stash) override;
  Tensor backward(Tensor dy, Context& context, Stash& stash, Wanted wanted) override;

 private:
  std::size_t first_;
};

/// Means over windows of `height` x `width`, side by side.
class Pool final : public Layer {
 public:
  Pool(ImageShape input, std::int64_t height, std::int64_t width) : input_(input), height_(height), width_(width) {}
  Tensor forward(Tensor x, Context& context, Stash& stash) override;
  Tensor backward(Tensor dy, Context& context, Stash& stash, Wanted wanted) override;

 private:
  ImageShape input_;
  std::int64_t height_, width_;
};

}  // namespace shardmark
