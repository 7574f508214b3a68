#include "model/zoo.hpp"

#include <fmt/format.h>

#include <cmath>

#include "model/block_builder.hpp"

namespace shardmark {
namespace {

constexpr double gpt2_deviation = 0.02;

struct GptParams {
  ParamId table, positions;
  int table_slot_of_head = 0;
  ParamId head;
};

Block embedding_block(Model& model, GptConfig const& c, Initials const& initials, GptParams& shared) {
  UnitId const own = model.spec.add_unit("embedding");
  UnitId const tables = c.tied == Tied::yes ? model.spec.add_unit("tied", 2) : own;
  shared.table = model.spec.add(tables, "wte.weight", {c.vocab, c.hidden}, initials.embedding(gpt2_deviation), true);
  shared.positions = model.spec.add(own, "wpe.weight", {c.seq, c.hidden}, initials.embedding(gpt2_deviation), true);
  Block block = BlockBuilder().add<EmbeddingLayer>(shared.table, 0, shared.positions).dropout(c.dropout, 0).finish("embedding");
  block.produces = {{own, 0}};
  block.reads = {own};
  if (c.tied == Tied::yes) {
    block.produces.push_back({tables, 0});
    block.reads.push_back(tables);
  }
  block.boundary = {c.seq, c.hidden};
  return block;
}

Block transformer_block(Model& model, GptConfig const& c, Initials const& initials, std::int64_t layer) {
  std::string const h = fmt::format("h.{}", layer);
  UnitId const unit = model.spec.add_unit(h);
  std::int64_t const H = c.hidden;
  double const residual_deviation = gpt2_deviation / std::sqrt(2.0 * double(c.layers));
  auto const matrix = [&](char const* name, std::int64_t out, std::int64_t in, double deviation) {
    return model.spec.add(unit, fmt::format("{}.{}.weight", h, name), {out, in}, initials.weight(deviation, in), true);
  };
  auto const vector = [&](std::string const& name, std::int64_t n, Initial initial) {
    return model.spec.add(unit, fmt::format("{}.{}", h, name), {n}, initial, false);
  };
  ParamId const q = matrix("attn.q", H, H, gpt2_deviation);
  matrix("attn.k", H, H, gpt2_deviation);
  matrix("attn.v", H, H, gpt2_deviation);
  ParamId const proj = matrix("attn.proj", H, H, residual_deviation);
  ParamId const fc = matrix("mlp.fc", 4 * H, H, gpt2_deviation), fc2 = matrix("mlp.proj", H, 4 * H, residual_deviation);
  ParamId const q_bias = vector("attn.q.bias", H, initials.bias());
  ParamId const k_bias = vector("attn.k.bias", H, initials.bias());
  model.spec.params[std::size_t(k_bias.v)].null_gradient = true;
  vector("attn.v.bias", H, initials.bias());
  ParamId const proj_bias = vector("attn.proj.bias", H, initials.bias()), fc_bias = vector("mlp.fc.bias", 4 * H, initials.bias());
  ParamId const fc2_bias = vector("mlp.proj.bias", H, initials.bias());
  ParamId const gain1 = vector("ln_1.weight", H, initials.gain()), shift1 = vector("ln_1.bias", H, initials.bias());
  ParamId const gain2 = vector("ln_2.weight", H, initials.gain()), shift2 = vector("ln_2.bias", H, initials.bias());

  auto const key = std::uint64_t(2 * layer + 1);  // of dropout; 0 is the embedding's
  Block block = BlockBuilder()
                    .add<Normalise>(gain1, shift1)
                    .add<Linear>(Linear::Parameters{q, q_bias, 3}, Activation::none)
                    .add<CausalAttention>(c.heads, H / c.heads, c.seq)
                    .add<Linear>(Linear::Parameters{proj, proj_bias}, Activation::none)
                    .dropout(c.dropout, key)
                    .residual()
                    .add<Normalise>(gain2, shift2)
                    .add<Linear>(Linear::Parameters{fc, fc_bias}, Activation::gelu)
                    .add<Linear>(Linear::Parameters{fc2, fc2_bias}, Activation::none)
                    .dropout(c.dropout, key + 1)
                    .residual()
                    .finish(h);
  block.produces = {{unit, 0}};
  block.reads = {unit};
  block.boundary = {c.seq, H};
  block.forward_flops = 2.0 * double(c.seq) * 12 * double(H) * double(H) + 2.0 * double(c.seq) * double(c.seq) * double(H);
  return block;
}

Block head_block(Model& model, GptConfig const& c, Initials const& initials, GptParams const& shared) {
  UnitId const unit = model.spec.add_unit("head");
  UnitId const tied = model.spec[shared.table].unit;
  ParamId const head = c.tied == Tied::yes
                           ? shared.table
                           : model.spec.add(unit, "lm_head.weight", {c.vocab, c.hidden}, initials.weight(gpt2_deviation, c.hidden), true);
  ParamId const gain = model.spec.add(unit, "ln_f.weight", {c.hidden}, initials.gain(), false);
  ParamId const shift = model.spec.add(unit, "ln_f.bias", {c.hidden}, initials.bias(), false);
  int const slot = c.tied == Tied::yes ? 1 : 0;
  Block block = BlockBuilder()
                    .add<Normalise>(gain, shift)
                    .add<Linear>(Linear::Parameters{head, ParamId{}, 1, slot}, Activation::none)
                    .add<CrossEntropyLoss>()
                    .finish("head");
  block.produces = {{unit, 0}};
  block.reads = {unit};
  if (c.tied == Tied::yes) {
    block.produces.push_back({tied, 1});
    block.reads.push_back(tied);
  }
  block.boundary = {c.seq, c.vocab};
  block.forward_flops = 2.0 * double(c.seq) * double(c.vocab) * double(c.hidden);
  return block;
}

}  // namespace

Model make_gpt(GptConfig const& c, DType dtype, std::uint64_t seed, InitialStyle style) {
  Model model{.spec = {}, .blocks = {}, .dtype = dtype, .seed = seed};
  Initials const initials{style};
  GptParams shared;
  model.blocks.push_back(embedding_block(model, c, initials, shared));
  for (std::int64_t l = 0; l < c.layers; ++l) model.blocks.push_back(transformer_block(model, c, initials, l));
  model.blocks.push_back(head_block(model, c, initials, shared));
  return model;
}

Model make_mlp(MlpConfig const& c, DType dtype, std::uint64_t seed, InitialStyle style) {
  Model model{.spec = {}, .blocks = {}, .dtype = dtype, .seed = seed};
  for (std::int64_t l = 0; l <= c.layers; ++l) {
    bool const last = l == c.layers;
    std::string const name = last ? "out" : fmt::format("layers.{}", l);
    std::int64_t const in = l == 0 ? c.features : c.hidden, out = last ? c.classes : c.hidden;
    // PyTorch's default for linear layers, Kaiming uniform with a = sqrt(5), comes to 1/sqrt(fan in) for weight and bias.
    Initial const kaiming{Initial::Kind::uniform, 1 / std::sqrt(double(in))};
    bool const verifying = style == InitialStyle::verifying;
    UnitId const unit = model.spec.add_unit(name);
    ParamId const weight = model.spec.add(unit, name + ".weight", {out, in},
                                          verifying ? Initial{Initial::Kind::normal, std::sqrt(2.0 / double(in))} : kaiming, true);
    ParamId const bias = model.spec.add(unit, name + ".bias", {out}, verifying ? Initial{Initial::Kind::normal, 0.1} : kaiming, false);
    BlockBuilder builder;
    builder.add<Linear>(Linear::Parameters{weight, bias}, last ? Activation::none : Activation::relu);
    if (last)
      builder.add<CrossEntropyLoss>();
    else
      builder.dropout(c.dropout, std::uint64_t(l));
    Block block = builder.finish(name);
    block.produces = {{unit, 0}};
    block.reads = {unit};
    block.boundary = {out};
    block.forward_flops = 2.0 * double(in) * double(out);
    model.blocks.push_back(std::move(block));
  }
  return model;
}

}  // namespace shardmark
