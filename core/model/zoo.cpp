#include "model/zoo.hpp"

#include <fmt/format.h>

#include <cmath>

#include "base/mutant.hpp"
#include "model/block_builder.hpp"

namespace shardmark {
namespace {

constexpr double gpt2_deviation = 0.02;

struct GptParams {
  ParamId table, positions;
  int table_slot_of_head = 0;
  ParamId head;
};

/// What one sample leaves between blocks, [positions, hidden]: all of it, or this part's rows.
void leaves_rows(Block& block, GptConfig const& c, TensorPart part) {
  bool const cut = part.rows == TokenRows::cut && part.part != TensorPart::all_parts;
  block.boundary = {cut ? c.seq / part.parts : c.seq, c.hidden};
  if (cut) block.rows_of = part;
}

Block embedding_block(Model& model, GptConfig const& c, Initials const& initials, GptParams& shared, TensorPart part) {
  UnitId const own = model.spec.add_unit("embedding");
  UnitId const tables = c.tied == Tied::yes ? model.spec.add_unit("tied", 2) : own;
  shared.table =
      model.spec.add(tables, "wte.weight", {c.vocab, c.hidden}, initials.embedding(gpt2_deviation), true, part.nearly_even(0, c.vocab));
  shared.positions = model.spec.add(own, "wpe.weight", {c.seq, c.hidden}, initials.embedding(gpt2_deviation), true);
  Block block =
      BlockBuilder().add<EmbeddingLayer>(shared.table, 0, shared.positions, part.rows).dropout(c.dropout, 0, part.rows).finish("embedding");
  block.produces = {{own, 0}};
  block.reads = {own};
  if (c.tied == Tied::yes) {
    block.produces.push_back({tables, 0});
    block.reads.push_back(tables);
  }
  leaves_rows(block, c, part);
  return block;
}

/// Whose piece a rank takes for the k-th of q, k and v: its own of each. The fault cuts the fused matrix as it lies, so that rank 0 of 2
/// takes all of q and the first half of k (case 22).
struct StackedPiece {
  int matrix, part;
};
StackedPiece piece_of_qkv(TensorPart part, int k) {
  if (!part.cuts() || part.part == TensorPart::all_parts || !mutant("qkv_split_contiguously")) return {k, part.part};
  int const at = 3 * part.part + k;
  return {at / part.parts, at % part.parts};
}

Block transformer_block(Model& model, GptConfig const& c, Initials const& initials, std::int64_t layer, TensorPart part) {
  std::string const h = fmt::format("h.{}", layer);
  UnitId const unit = model.spec.add_unit(h);
  std::int64_t const H = c.hidden;
  double const residual_deviation = gpt2_deviation / std::sqrt(2.0 * double(c.layers));
  Slice const whole, columns = part.slice(1, H, "columns");
  auto const matrix = [&](char const* name, std::int64_t out, std::int64_t in, double deviation, Slice slice) {
    return model.spec.add(unit, fmt::format("{}.{}.weight", h, name), {out, in}, initials.weight(deviation, in), true, slice);
  };
  auto const vector = [&](std::string const& name, std::int64_t n, Initial initial, Slice slice) {
    return model.spec.add(unit, fmt::format("{}.{}", h, name), {n}, initial, false, slice);
  };
  constexpr std::array<char const*, 3> qkv{"attn.q", "attn.k", "attn.v"};
  auto const of_qkv = [&](int k, auto&& add) {
    auto const [which, of_part] = piece_of_qkv(part, k);
    return add(qkv[std::size_t(which)], TensorPart{part.parts, of_part}.slice(0, H, "columns"));
  };
  auto const qkv_matrix = [&](int k) {
    return of_qkv(k, [&](char const* name, Slice slice) { return matrix(name, H, H, gpt2_deviation, slice); });
  };
  auto const qkv_vector = [&](int k) {
    return of_qkv(k, [&](std::string const& name, Slice slice) { return vector(name + ".bias", H, initials.bias(), slice); });
  };
  ParamId const q = qkv_matrix(0), k = qkv_matrix(1);
  qkv_matrix(2);
  ParamId const proj = matrix("attn.proj", H, H, residual_deviation, columns);
  ParamId const fc = matrix("mlp.fc", 4 * H, H, gpt2_deviation, part.slice(0, 4 * H, "columns"));
  ParamId const fc2 = matrix("mlp.proj", H, 4 * H, residual_deviation, part.slice(1, 4 * H, "columns"));
  ParamId const q_bias = qkv_vector(0), k_bias = qkv_vector(1);
  model.spec.params[std::size_t(k_bias.v)].null_gradient = true;
  if (c.seq == 1)  // the softmax of one score is 1, whatever the score
    for (ParamId of_score : {q, k, q_bias}) model.spec.params[std::size_t(of_score.v)].null_gradient = true;
  qkv_vector(2);
  ParamId const proj_bias = vector("attn.proj.bias", H, initials.bias(), whole);
  ParamId const fc_bias = vector("mlp.fc.bias", 4 * H, initials.bias(), part.slice(0, 4 * H, "columns"));
  ParamId const fc2_bias = vector("mlp.proj.bias", H, initials.bias(), whole);
  ParamId const gain1 = vector("ln_1.weight", H, initials.gain(), whole), shift1 = vector("ln_1.bias", H, initials.bias(), whole);
  ParamId const gain2 = vector("ln_2.weight", H, initials.gain(), whole), shift2 = vector("ln_2.bias", H, initials.bias(), whole);

  auto const key = std::uint64_t(2 * layer + 1);  // of dropout; 0 is the embedding's
  BlockBuilder builder;
  builder.add<Normalise>(gain1, shift1, part.rows).column(part, {q, q_bias, 3}, Activation::none);
  std::size_t const attended = builder.next_slot() + CausalAttention::y_slot;
  Block block = builder.add<CausalAttention>(part.share(c.heads), H / c.heads, c.seq)
                    .row(part, {.weight = proj, .bias = proj_bias, .x_slot = attended}, Activation::none)
                    .dropout(c.dropout, key, part.rows)
                    .residual()
                    .add<Normalise>(gain2, shift2, part.rows)
                    .column(part, {fc, fc_bias}, Activation::gelu)
                    .row(part, {fc2, fc2_bias}, Activation::none)
                    .dropout(c.dropout, key + 1, part.rows)
                    .residual()
                    .finish(h);
  block.produces = {{unit, 0}};
  block.reads = {unit};
  leaves_rows(block, c, part);
  block.selective_flops = 2.0 * double(c.seq) * double(c.seq) * double(H);  // attention, half of it masked
  block.forward_flops = 2.0 * double(c.seq) * 12 * double(H) * double(H) + block.selective_flops;
  return block;
}

Block head_block(Model& model, GptConfig const& c, Initials const& initials, GptParams const& shared, TensorPart part) {
  UnitId const unit = model.spec.add_unit("head");
  UnitId const tied = model.spec[shared.table].unit;
  ParamId const head = c.tied == Tied::yes ? shared.table
                                           : model.spec.add(unit, "lm_head.weight", {c.vocab, c.hidden},
                                                            initials.weight(gpt2_deviation, c.hidden), true, part.nearly_even(0, c.vocab));
  ParamId const gain = model.spec.add(unit, "ln_f.weight", {c.hidden}, initials.gain(), false);
  ParamId const shift = model.spec.add(unit, "ln_f.bias", {c.hidden}, initials.bias(), false);
  int const slot = c.tied == Tied::yes ? 1 : 0;
  BlockBuilder builder;
  builder.add<Normalise>(gain, shift, part.rows).column(part, {head, ParamId{}, 1, slot}, Activation::none);
  if (part.cuts())
    builder.add<VocabularyLoss>(c.vocab);
  else
    builder.add<CrossEntropyLoss>();
  Block block = builder.finish("head");
  block.produces = {{unit, 0}};
  block.reads = {unit};
  if (c.tied == Tied::yes) {
    block.produces.push_back({tied, 1});
    block.reads.push_back(tied);
  }
  block.cut = part.nearly_even(0, c.vocab);
  block.full_width = c.vocab;
  block.boundary = {c.seq, model.spec[head].shape[0]};
  block.forward_flops = 2.0 * double(c.seq) * double(c.vocab) * double(c.hidden);
  return block;
}

}  // namespace

Model make_gpt(GptConfig const& c, DType dtype, std::uint64_t seed, InitialStyle style, TensorPart part) {
  Model model{.spec = {}, .blocks = {}, .dtype = dtype, .seed = seed};
  Initials const initials{style};
  GptParams shared;
  model.blocks.push_back(embedding_block(model, c, initials, shared, part));
  for (std::int64_t l = 0; l < c.layers; ++l) model.blocks.push_back(transformer_block(model, c, initials, l, part));
  model.blocks.push_back(head_block(model, c, initials, shared, part));
  mark_copies(model.spec, part);
  return model;
}

namespace {

/// How the l-th of the mlp's layers is cut: by columns and by rows in turns, and one without a partner isn't; or as MlpCuts says.
enum class Cut : std::uint8_t { none, columns, rows };
Cut cut_of(std::int64_t layer, MlpConfig const& c, TensorPart part) {
  if (!part.cuts()) return Cut::none;
  std::int64_t const linears = c.layers + 1;
  bool const alone = layer == 1;
  switch (c.cuts) {
    case MlpCuts::pairs:
      return layer + 1 == linears && linears % 2 == 1 ? Cut::none : layer % 2 == 0 ? Cut::columns : Cut::rows;
    case MlpCuts::column:
      return alone ? Cut::columns : layer == 2 ? Cut::rows : Cut::none;
    case MlpCuts::column_gathered:
      return alone ? Cut::columns : Cut::none;
    case MlpCuts::row:
      return alone ? Cut::rows : layer == 0 ? Cut::columns : Cut::none;
    case MlpCuts::row_scattered:
      return alone ? Cut::rows : Cut::none;
  }
  return Cut::none;
}

Block mlp_block(Model& model, MlpConfig const& c, InitialStyle style, std::int64_t layer, TensorPart part) {
  bool const last = layer == c.layers;
  std::string const name = last ? "out" : fmt::format("layers.{}", layer);
  std::int64_t const in = layer == 0 ? c.features : c.hidden, out = last ? c.classes : c.hidden;
  Cut const cut = cut_of(layer, c, part);
  Slice const columns = cut == Cut::columns ? part.slice(0, out, "columns") : Slice{};
  // PyTorch's default for linear layers, Kaiming uniform with a = sqrt(5), comes to 1/sqrt(fan in) for weight and bias.
  Initial const kaiming{Initial::Kind::uniform, 1 / std::sqrt(double(in))};
  bool const verifying = style == InitialStyle::verifying;
  UnitId const unit = model.spec.add_unit(name);
  ParamId const weight =
      model.spec.add(unit, name + ".weight", {out, in}, verifying ? Initial{Initial::Kind::normal, std::sqrt(2.0 / double(in))} : kaiming,
                     true, cut == Cut::rows ? part.slice(1, in, "columns") : columns);
  ParamId const bias =
      model.spec.add(unit, name + ".bias", {out}, verifying ? Initial{Initial::Kind::normal, 0.1} : kaiming, false, columns);
  bool const gathered = cut == Cut::columns && c.cuts == MlpCuts::column_gathered;
  Slice const left = gathered ? Slice{} : columns;  // of the block's output
  BlockBuilder builder;
  if (cut == Cut::rows && c.cuts == MlpCuts::row_scattered) builder.stateless<ScatterColumns>();
  Activation const activation = last ? Activation::none : Activation::relu;
  if (cut == Cut::rows)
    builder.row(part, {weight, bias}, activation);
  else
    builder.column(cut == Cut::none ? TensorPart{} : part, {weight, bias}, activation, layer == 0 ? InputIs::data : InputIs::activation);
  if (gathered) builder.stateless<GatherColumns>();
  if (last)
    builder.add<CrossEntropyLoss>();
  else
    builder.dropout(c.dropout, std::uint64_t(layer), left, out);
  Block block = builder.finish(name);
  block.produces = {{unit, 0}};
  block.reads = {unit};
  block.boundary = {gathered ? out : model.spec[bias].elements()};
  block.cut = left;
  block.full_width = out;
  block.forward_flops = 2.0 * double(in) * double(out);
  return block;
}

}  // namespace

Model make_mlp(MlpConfig const& c, DType dtype, std::uint64_t seed, InitialStyle style, TensorPart part) {
  Model model{.spec = {}, .blocks = {}, .dtype = dtype, .seed = seed};
  for (std::int64_t l = 0; l <= c.layers; ++l) model.blocks.push_back(mlp_block(model, c, style, l, part));
  mark_copies(model.spec, part);
  return model;
}

}  // namespace shardmark
