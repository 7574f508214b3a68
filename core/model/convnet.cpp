#include <fmt/format.h>

#include "model/block_builder.hpp"

namespace shardmark {
namespace {

constexpr SlidingWindow three_by_three{3, 3, 1, 1};

BatchNormParts add_batch_norm(ModelSpec& spec, UnitId unit, std::string const& name, std::int64_t width, Initials const& initials) {
  BatchNormParts out;
  out.gamma = spec.add(unit, name + ".weight", {width}, initials.gain(), false);
  out.beta = spec.add(unit, name + ".bias", {width}, initials.bias(), false);
  out.running = spec.add_running(unit, name, width);
  return out;
}

/// Kaiming uniform with a = sqrt(5), PyTorch's default, comes to 1/sqrt(fan in); to verify, the deviation that keeps ReLU's variance.
Initial weight(Initials const& initials, std::int64_t fan_in) {
  if (initials.verifying()) return {Initial::Kind::normal, std::sqrt(2.0 / double(fan_in))};
  return {Initial::Kind::uniform, 1 / std::sqrt(double(fan_in))};
}

/// Convolution, batch normalisation, ReLU, pooling. `image` is what goes in, and becomes what comes out.
Block image_block(Model& model, ConvnetConfig const& c, Initials const& initials, std::int64_t layer, ImageShape& image) {
  std::string const name = fmt::format("layers.{}", layer);
  UnitId const unit = model.spec.add_unit(name);
  std::int64_t const fan_in = three_by_three.elements(image.channels);
  ParamId const filter = model.spec.add(
      unit, name + ".conv.weight", {c.hidden, three_by_three.height, three_by_three.width, image.channels}, weight(initials, fan_in), true);
  BatchNormParts const norm = add_batch_norm(model.spec, unit, name + ".bn", c.hidden, initials);
  BlockBuilder builder;
  if (layer == 0) builder.stateless<ChannelsLast>(image);
  builder.add<Convolve>(filter, image, three_by_three, layer == 0 ? InputIs::data : InputIs::activation).batch_norm(norm).add<Rectify>();
  double const forward_flops = 2.0 * double(image.pixels() * fan_in * c.hidden);
  image.channels = c.hidden;
  if (layer + 1 < c.layers && image.height >= 2 && image.width >= 2) {
    builder.stateless<Pool>(image, 2, 2);
    image.height /= 2;
    image.width /= 2;
  }
  Block block = builder.finish(name);
  block.produces = {{unit, 0}};
  block.reads = {unit};
  block.boundary = {image.height, image.width, image.channels};
  block.forward_flops = forward_flops;
  return block;
}

Block head_block(Model& model, ConvnetConfig const& c, Initials const& initials, ImageShape const& image) {
  UnitId const unit = model.spec.add_unit("fc");
  Initial const kaiming = weight(initials, c.hidden);
  ParamId const matrix = model.spec.add(unit, "fc.weight", {c.classes, c.hidden}, kaiming, true);
  ParamId const bias = model.spec.add(unit, "fc.bias", {c.classes}, initials.verifying() ? initials.bias() : kaiming, false);
  Block block = BlockBuilder()
                    .stateless<Pool>(image, image.height, image.width)
                    .add<Linear>(Linear::Parameters{matrix, bias}, Activation::none)
                    .add<CrossEntropyLoss>()
                    .finish("fc");
  block.produces = {{unit, 0}};
  block.reads = {unit};
  block.boundary = {c.classes};
  block.forward_flops = 2.0 * double(c.hidden * c.classes);
  return block;
}

}  // namespace

Model make_convnet(ConvnetConfig const& c, DType dtype, std::uint64_t seed, InitialStyle style) {
  Model model{.spec = {}, .blocks = {}, .dtype = dtype, .seed = seed};
  Initials const initials{style};
  ImageShape image = c.image;
  for (std::int64_t l = 0; l < c.layers; ++l) model.blocks.push_back(image_block(model, c, initials, l, image));
  model.blocks.push_back(head_block(model, c, initials, image));
  return model;
}

}  // namespace shardmark
