#include "model/layers.hpp"

#include <cmath>

#include "base/mutant.hpp"
#include "model/tensor_group.hpp"

namespace shardmark {

Tensor rows_by(Context& context, Tensor const& like, std::int64_t columns) {
  return context.make(like.view.dtype, {like.view.shape[0], columns});
}

// ---- Linear

Tensor Linear::forward(Tensor x, Context& context, Stash& stash) {
  View const w = context.store.weights(parameters_.weight, parameters_.stacked, context.version);
  View const b = parameters_.bias.valid() ? context.store.weights(parameters_.bias, parameters_.stacked, context.version) : View{};
  Tensor y = rows_by(context, x, w.shape[0]);
  Matmul product{.a = x.view, .b = w, .c = y.view, .tb = Transpose::yes, .bias = b, .aux = {}};
  if (b) product.epilogue = Epilogue::bias;
  if (activation_ == Activation::gelu && b) {
    Tensor z = rows_by(context, x, w.shape[0]);
    product.epilogue = Epilogue::bias_gelu;
    product.aux = z.view;
    stash.save(first_ + 1, z, Until::input);
  }
  context.run(product);
  keep_input(x, stash);
  return product.epilogue == Epilogue::bias_gelu ? y : activated(std::move(y), context, stash);
}

Tensor Linear::activated(Tensor z, Context& context, Stash& stash) const {
  if (activation_ == Activation::none) return z;
  // ReLU's gradient can be told from its output, which takes the place of its input; GELU's can't.
  Tensor y = activation_ == Activation::relu ? z : rows_by(context, z, z.view.shape[1]);
  if (activation_ == Activation::relu)
    context.run(Relu{z.view, y.view});
  else
    context.run(Gelu{z.view, y.view});
  stash.save(first_ + 1, std::move(z), Until::input);
  return y;
}

Tensor Linear::backward(Tensor dy, Context& context, Stash& stash, Wanted wanted) {
  Tensor dx;
  if (wants_input(wanted)) {
    if (activation_ == Activation::gelu) context.run(GeluInput{stash[first_ + 1].view, dy.view, dy.view});
    if (activation_ == Activation::relu) context.run(ReluInput{stash[first_ + 1].view, dy.view, dy.view});
    dx = input_gradient(dy, context);
    if (!wants_weight(wanted)) stash.save(first_ + 2, dy, Until::weight);
  }
  if (wants_weight(wanted)) weight_gradient(wants_input(wanted) ? dy.view : stash[first_ + 2].view, stash[x_slot()].view, context);
  return dx;
}

Tensor Linear::input_gradient(Tensor const& dz, Context& context) const {
  View const w = context.store.weights(parameters_.weight, parameters_.stacked, context.version);
  Tensor dx = rows_by(context, dz, w.shape[1]);
  context.run(Matmul{.a = dz.view, .b = w, .c = dx.view, .bias = {}, .aux = {}});
  return dx;
}

void Linear::weight_gradient(View const& dz, View const& x, Context& context) const {
  auto& store = context.store;
  context.run(Matmul{.a = dz,
                     .b = x,
                     .c = store.gradient(parameters_.weight, parameters_.stacked, parameters_.slot),
                     .ta = Transpose::yes,
                     .write = store.gradient_write(parameters_.weight, parameters_.slot),
                     .bias = {},
                     .aux = {}});
  if (parameters_.bias.valid())
    context.run(ColumnSum{dz, store.gradient(parameters_.bias, parameters_.stacked, 0), store.gradient_write(parameters_.bias, 0)});
}

// ---- Normalise

Tensor Normalise::forward(Tensor x, Context& context, Stash& stash) {
  DType const statistics = accumulator(x.view.dtype);
  Tensor y = rows_by(context, x, x.view.shape[1]);
  Tensor mean = context.make(statistics, {x.view.shape[0]}), rstd = context.make(statistics, {x.view.shape[0]});
  context.run(LayerNorm{x.view, context.store.weight(gamma_, context.version), context.store.weight(beta_, context.version), y.view,
                        mean.view, rstd.view});
  stash.save(first_, x, Until::weight);
  stash.save(first_ + 1, mean, Until::weight);
  stash.save(first_ + 2, rstd, Until::weight);
  return y;
}

Tensor Normalise::backward(Tensor dy, Context& context, Stash& stash, Wanted wanted) {
  Tensor dx;
  if (wants_input(wanted)) {
    dx = rows_by(context, dy, dy.view.shape[1]);
    context.run(LayerNormInput{dy.view, stash[first_].view, context.store.weight(gamma_, context.version), stash[first_ + 1].view,
                               stash[first_ + 2].view, dx.view});
    if (!wants_weight(wanted)) stash.save(first_ + 3, dy, Until::weight);
  }
  if (wants_weight(wanted)) weight_gradient(wants_input(wanted) ? dy.view : stash[first_ + 3].view, context, stash);
  return dx;
}

void Normalise::weight_gradient(View const& dy, Context& context, Stash& stash) const {
  if (rows_ == TokenRows::cut) return weight_gradient_of_parts(dy, context, stash);
  auto& store = context.store;
  context.run(LayerNormWeight{dy, stash[first_].view, stash[first_ + 1].view, stash[first_ + 2].view, store.gradient(gamma_, 1, 0),
                              store.gradient(beta_, 1, 0), store.gradient_write(gamma_, 0)});
}

void Normalise::weight_gradient_of_parts(View const& dy, Context& context, Stash& stash) const {
  auto& store = context.store;
  int const here = context.tensor.here();
  std::int64_t const width = dy.shape[1];
  auto const partial = [&](int p) {
    Tensor sums = context.make(accumulator(dy.dtype), {2, width});
    auto const rows = [&](View const& of) { return piece(of, 0, p, here); };
    auto const sum = [&](int i) { return reshape(piece(sums.view, 0, i, 2), {width}); };
    context.run(
        LayerNormWeight{rows(dy), rows(stash[first_].view), rows(stash[first_ + 1].view), rows(stash[first_ + 2].view), sum(0), sum(1)});
    return sums;
  };
  Tensor const sums =
      tensor_mutant(context, "layer_norm_of_own_rows") ? partial(0) : sum_of_parts(context, "layer norm gradients", partial);
  int i = 0;
  for (ParamId const param : {gamma_, beta_}) {
    View const leaf = store.gradient(param, 1, 0), sum = reshape(piece(sums.view, 0, i++, 2), {width});
    std::array<View, 2> const both{leaf, sum};
    if (store.gradient_write(param, 0) == Write::overwrite)
      context.run(Copy{sum, leaf});
    else
      context.run(SumTree{both, leaf});
  }
}

// ---- CausalAttention

View CausalAttention::part(View const& qkv, int which) const {
  // [T,3H] -> [B,S,heads,d] of q, k or v, without a copy.
  View v = qkv;
  std::int64_t const row = qkv.stride[0];
  v.data += std::size_t(which * heads_ * size_) * width(qkv.dtype);
  v.rank = 4;
  v.shape = {qkv.shape[0] / seq_, seq_, heads_, size_};
  v.stride = {seq_ * row, row, size_, 1};
  return v;
}

Tensor CausalAttention::forward(Tensor qkv, Context& context, Stash& stash) {
  stash.save(first_, qkv, Until::input);
  return attend(qkv, context, stash);
}

void CausalAttention::complete(Context& context, Stash& stash) { attend(stash[first_], context, stash); }

Tensor CausalAttention::attend(Tensor const& qkv, Context& context, Stash& stash) const {
  std::int64_t const rows = qkv.view.shape[0] / seq_;
  Tensor y = rows_by(context, qkv, heads_ * size_);
  Tensor lse = context.make(accumulator(qkv.view.dtype), {rows, heads_, seq_});
  bool const spoiled = context.pass == Pass::recompute && mutant("recompute_attention_unscaled");
  context.run(Attention{part(qkv.view, 0), part(qkv.view, 1), part(qkv.view, 2), reshape(y.view, {rows, seq_, heads_, size_}), lse.view,
                        spoiled ? 1 : 1 / std::sqrt(double(size_))});
  stash.save(first_ + y_slot, y, Until::weight, Again::possible);
  stash.save(first_ + 2, lse, Until::input, Again::possible);
  return y;
}

Tensor CausalAttention::backward(Tensor dy, Context& context, Stash& stash, Wanted wanted) {
  if (!wants_input(wanted)) return {};
  View const qkv = stash[first_].view;
  std::int64_t const rows = qkv.shape[0] / seq_;
  Tensor dqkv = rows_by(context, dy, qkv.shape[1]);
  auto const by_head = [&](View const& v) { return reshape(v, {rows, seq_, heads_, size_}); };
  context.run(AttentionInput{part(qkv, 0), part(qkv, 1), part(qkv, 2), by_head(stash[first_ + y_slot].view), stash[first_ + 2].view,
                             by_head(dy.view), part(dqkv.view, 0), part(dqkv.view, 1), part(dqkv.view, 2), 1 / std::sqrt(double(size_))});
  return dqkv;
}

// ---- DropoutLayer

Tensor DropoutLayer::apply(Tensor x, Context& context) const {
  if (rows_ == TokenRows::cut) {
    if (x.view.elements() > 0) apply_to_own_rows(x.view, context);
    return x;
  }
  // One row of the mask's key is one sample; x holds all its positions.
  std::int64_t const rows = context.micro.rows;
  View const v = rows == 0 ? x.view : reshape(x.view, {rows, x.view.elements() / rows});
  if (rows > 0) context.run(Dropout{v, v, context.micro.samples.view, p_, context.seed, layer_, cut_.begin, full_width_});
  return x;
}

/// The rows that are here may begin and end inside a sample.
void DropoutLayer::apply_to_own_rows(View const& x, Context& context) const {
  TensorGroup const& group = context.tensor;
  std::int64_t const here = x.shape[0], width = x.shape[1], positions = here / group.here() * group.parts() / context.micro.rows;
  std::int64_t const first = here * group.first(), last = first + here;
  for (std::int64_t row = first; row < last;) {
    std::int64_t const sample = row / positions, end = std::min(last, (sample + 1) * positions);
    View const part = reshape(slice(x, 0, row - first, end - first), {1, (end - row) * width});
    context.run(Dropout{part, part, slice(context.micro.samples.view, 0, sample, sample + 1), p_, context.seed, layer_,
                        (row - sample * positions) * width, positions * width});
    row = end;
  }
}

Tensor DropoutLayer::forward(Tensor x, Context& context, Stash&) {
  return context.pass == Pass::evaluate ? x : apply(std::move(x), context);
}

Tensor DropoutLayer::backward(Tensor dy, Context& context, Stash&, Wanted wanted) {
  if (!wants_input(wanted)) return {};
  // dy may be shared with a residual branch: the masked gradient gets memory of its own.
  Tensor dx = context.make(dy.view.dtype, {dy.view.shape[0], dy.view.shape[1]});
  context.run(Copy{dy.view, dx.view});
  return apply(std::move(dx), context);
}

// ---- EmbeddingLayer

namespace {

TableSlice table_slice(ParamSpec const& table) { return table.slice.dim < 0 ? TableSlice{} : TableSlice{table.slice.begin, table.full[0]}; }

}  // namespace

Tensor EmbeddingLayer::forward(Tensor ids, Context& context, Stash& stash) {
  View const table = context.store.weight(table_, context.version);
  std::int64_t const rows = ids.view.shape[0], seq = ids.view.shape[1], hidden = table.shape[1];
  Tensor y = context.make(table.dtype, {rows * seq, hidden});
  ParamSpec const& spec = context.store.spec()[table_];
  context.run(Embedding{ids.view, table, context.store.weight(positions_, context.version), reshape(y.view, {rows, seq, hidden}),
                        table_slice(spec)});
  stash.save(first_, ids, Until::weight);
  if (spec.slice.dim < 0 || !context.tensor.spans_ranks()) return y;
  return sum_of_parts(
      context, "embedding", [&](int) { return y; }, rows_);
}

Tensor EmbeddingLayer::backward(Tensor dy, Context& context, Stash& stash, Wanted wanted) {
  if (wants_input(wanted) && rows_ == TokenRows::cut) dy = context.tensor.all_rows(dy, context, "embedding gradient");
  if (wanted == Wanted::input) stash.save(first_ + 1, dy, Until::weight);
  if (wants_weight(wanted)) weight_gradient(wants_input(wanted) ? dy.view : stash[first_ + 1].view, stash[first_].view, context);
  return {};
}

void EmbeddingLayer::weight_gradient(View const& dy, View const& ids, Context& context) const {
  auto& store = context.store;
  View const by_row = reshape(dy, {ids.shape[0], ids.shape[1], dy.shape[1]});
  context.run(EmbeddingWeight{ids, by_row, store.gradient(table_, 1, slot_), store.gradient_write(table_, slot_),
                              table_slice(store.spec()[table_])});
  context.run(PositionWeight{by_row, store.gradient(positions_, 1, 0), store.gradient_write(positions_, 0)});
}

// ---- losses

Tensor CrossEntropyLoss::forward(Tensor logits, Context& context, Stash& stash) {
  View const target = reshape(context.micro.target.view, {context.micro.target.view.elements()});
  bool const train = context.pass != Pass::evaluate;
  context.run(CrossEntropy{logits.view, target, context.micro.tally.view, train ? logits.view : View{}, context.micro.scale});
  if (train) stash.save(first_, logits, Until::input);
  return logits;
}

Tensor CrossEntropyLoss::backward(Tensor, Context&, Stash& stash, Wanted wanted) {
  return wants_input(wanted) ? stash.take(first_) : Tensor{};
}

Tensor SquaredErrorLoss::forward(Tensor y, Context& context, Stash& stash) {
  Tensor dy = context.pass == Pass::evaluate ? Tensor{} : rows_by(context, y, y.view.shape[1]);
  context.run(SquaredError{y.view, context.micro.target.view, context.micro.tally.view, dy.view, context.micro.scale});
  if (dy) stash.save(first_, dy, Until::input);
  return y;
}

Tensor SquaredErrorLoss::backward(Tensor, Context&, Stash& stash, Wanted wanted) {
  return wants_input(wanted) ? stash.take(first_) : Tensor{};
}

// ---- compositions

Tensor Chain::forward(Tensor x, Context& context, Stash& stash) {
  for (auto& layer : layers_) x = layer->forward(std::move(x), context, stash);
  return x;
}

Tensor Chain::backward(Tensor dy, Context& context, Stash& stash, Wanted wanted) {
  for (auto layer = layers_.rbegin(); layer != layers_.rend(); ++layer) dy = (*layer)->backward(std::move(dy), context, stash, wanted);
  return dy;
}

void Chain::complete(Context& context, Stash& stash) {
  for (auto& layer : layers_) layer->complete(context, stash);
}

Tensor Residual::forward(Tensor x, Context& context, Stash& stash) {
  Tensor y = f_->forward(x, context, stash);
  std::array<View, 2> const in{x.view, y.view};
  context.run(SumTree{in, y.view});
  return y;
}

Tensor Residual::backward(Tensor dy, Context& context, Stash& stash, Wanted wanted) {
  Tensor dx = f_->backward(dy, context, stash, wanted);
  if (!wants_input(wanted)) return {};
  std::array<View, 2> const in{dy.view, dx.view};
  context.run(SumTree{in, dx.view});
  return dx;
}

}  // namespace shardmark
