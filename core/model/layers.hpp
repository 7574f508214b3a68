#pragma once
// The layers that models are made of. Each takes its parameters and the first of its stash slots at construction; `slots` says how
// many it uses. T = rows x sequence positions.

#include <optional>

#include "model/layer.hpp"
#include "model/tensor_part.hpp"

namespace shardmark {

/// Helpers shared by layers.
Tensor rows_by(Context& context, Tensor const& like, std::int64_t columns);  // [T, columns], like's type

enum class Activation : std::uint8_t { none, gelu, relu };

/// y = act(x W^T + b). x [T,I], W [O,I] (possibly several adjacent parameters stacked), b [O] or none.
/// Backward: dX = dz W, dW = dz^T x, db = sum dz, dz = dy act'(z). With an activation, backward overwrites dy.
class Linear : public Layer {
 public:
  static constexpr std::size_t slots = 3;  // x (weight), z or y of the activation (input), dz (weight, split backward)
  struct Parameters {
    ParamId weight, bias;                    // bias.v < 0: none
    int stacked = 1;                         // adjacent parameters taken together
    int slot = 0;                            // gradient slot (tied weights)
    std::optional<std::size_t> x_slot = {};  // of the stash, where the layer before it saves x as its output; absent: an own one
  };
  Linear(Parameters parameters, Activation activation, std::size_t first_slot)
      : parameters_(parameters), activation_(activation), first_(first_slot) {}
  Tensor forward(Tensor x, Context& context, Stash& stash) override;
  Tensor backward(Tensor dy, Context& context, Stash& stash, Wanted wanted) override;

 protected:
  Parameters const& parameters() const { return parameters_; }
  /// act(z); z's memory may be taken for it.
  Tensor activated(Tensor z, Context& context, Stash& stash) const;
  void keep_input(Tensor x, Stash& stash) const {
    if (!parameters_.x_slot) stash.save(first_, std::move(x), Until::weight);
  }
  Tensor take_input(Stash& stash) const { return stash.take(x_slot()); }
  virtual Tensor input_gradient(Tensor const& dz, Context& context) const;
  virtual void weight_gradient(View const& dz, View const& x, Context& context) const;

 private:
  std::size_t x_slot() const { return parameters_.x_slot.value_or(first_); }
  Parameters parameters_;
  Activation activation_;
  std::size_t first_;
};

/// Layer normalisation over the last dimension. Its weight gradient belongs to the weight half (validation rule 5). TokenRows::cut: each
/// part has a sum over its own rows, and the weight gradient is the sum of these over all parts (case 15).
class Normalise final : public Layer {
 public:
  static constexpr std::size_t slots = 4;  // x, mean, rstd (weight), dy (weight, split backward)
  Normalise(ParamId gamma, ParamId beta, TokenRows rows, std::size_t first_slot)
      : gamma_(gamma), beta_(beta), rows_(rows), first_(first_slot) {}
  Tensor forward(Tensor x, Context& context, Stash& stash) override;
  Tensor backward(Tensor dy, Context& context, Stash& stash, Wanted wanted) override;

 private:
  void weight_gradient(View const& dy, Context& context, Stash& stash) const;
  void weight_gradient_of_parts(View const& dy, Context& context, Stash& stash) const;
  ParamId gamma_, beta_;
  TokenRows rows_;
  std::size_t first_;
};

/// Causal self-attention without its projections: [T,3H] -> [T,H]. No weights. A selective stash (Korthikanti et al., "Reducing activation
/// recomputation in large transformer models", 2022) has qkv alone. Where softmax(QK^T) is stored, that spares it; here it never is.
class CausalAttention final : public Layer {
 public:
  static constexpr std::size_t slots = 3;   // qkv (input), y (weight: the projection behind it takes it from here), lse (input)
  static constexpr std::size_t y_slot = 1;  // behind the first
  CausalAttention(std::int64_t heads, std::int64_t head_size, std::int64_t seq, std::size_t first_slot)
      : heads_(heads), size_(head_size), seq_(seq), first_(first_slot) {}
  Tensor forward(Tensor qkv, Context& context, Stash& stash) override;
  Tensor backward(Tensor dy, Context& context, Stash& stash, Wanted wanted) override;
  void complete(Context& context, Stash& stash) override;

 private:
  Tensor attend(Tensor const& qkv, Context& context, Stash& stash) const;
  View part(View const& qkv, int which) const;
  std::int64_t heads_, size_, seq_;
  std::size_t first_;
};

/// Dropout with a mask keyed by sample (validation rule 10); overwrites its input. Saves nothing: the mask is a function.
class DropoutLayer final : public Layer {
 public:
  static constexpr std::size_t slots = 0;
  /// @param cut  of x's last dimension, which has `full_width` elements in all; the mask goes by the index there
  DropoutLayer(double p, std::uint64_t layer, Slice cut = {}, std::int64_t full_width = 0)
      : p_(p), layer_(layer), cut_(cut), full_width_(cut.dim < 0 ? 0 : full_width) {}
  DropoutLayer(double p, std::uint64_t layer, TokenRows rows) : p_(p), layer_(layer), rows_(rows) {}
  Tensor forward(Tensor x, Context& context, Stash& stash) override;
  Tensor backward(Tensor dy, Context& context, Stash& stash, Wanted wanted) override;

 private:
  Tensor apply(Tensor x, Context& context) const;
  void apply_to_own_rows(View const& x, Context& context) const;
  double p_;
  std::uint64_t layer_;
  Slice cut_;
  std::int64_t full_width_ = 0;
  TokenRows rows_ = TokenRows::whole;
};

/// Tokens and learned positions: ids [rows,S] -> [T,H]. Either table may be a tied unit's. The token table may be cut by rows over the
/// tensor-parallel group: each part looks up the ids that it has, with their positions, and the others are +0; their sum is the embedding,
/// bit for bit, whole or (TokenRows::cut) of this part's rows. Both tables' gradients are complete as they are: each part sees dy of all
/// rows.
class EmbeddingLayer final : public Layer {
 public:
  static constexpr std::size_t slots = 2;  // ids (weight), dy (weight, split backward)
  EmbeddingLayer(ParamId table, int slot, ParamId positions, TokenRows rows, std::size_t first_slot)
      : table_(table), positions_(positions), slot_(slot), rows_(rows), first_(first_slot) {}
  Tensor forward(Tensor ids, Context& context, Stash& stash) override;
  Tensor backward(Tensor dy, Context& context, Stash& stash, Wanted wanted) override;

 private:
  void weight_gradient(View const& dy, View const& ids, Context& context) const;
  ParamId table_, positions_;
  int slot_;
  TokenRows rows_;
  std::size_t first_;
};

/// Softmax cross-entropy against the micro-batch's targets: adds to its tally; keeps the gradient in the logits' memory.
/// The output is the logits' memory too, and carries no information.
class CrossEntropyLoss final : public Layer {
 public:
  static constexpr std::size_t slots = 1;  // dlogits (input)
  explicit CrossEntropyLoss(std::size_t first_slot) : first_(first_slot) {}
  Tensor forward(Tensor logits, Context& context, Stash& stash) override;
  Tensor backward(Tensor dy, Context& context, Stash& stash, Wanted wanted) override;

 private:
  std::size_t first_;
};

/// Half the squared distance to the target, summed.
class SquaredErrorLoss final : public Layer {
 public:
  static constexpr std::size_t slots = 1;
  explicit SquaredErrorLoss(std::size_t first_slot) : first_(first_slot) {}
  Tensor forward(Tensor y, Context& context, Stash& stash) override;
  Tensor backward(Tensor dy, Context& context, Stash& stash, Wanted wanted) override;

 private:
  std::size_t first_;
};

/// Layers one after the other.
class Chain final : public Layer {
 public:
  explicit Chain(std::vector<std::unique_ptr<Layer>> layers) : layers_(std::move(layers)) {}
  Tensor forward(Tensor x, Context& context, Stash& stash) override;
  Tensor backward(Tensor dy, Context& context, Stash& stash, Wanted wanted) override;
  void complete(Context& context, Stash& stash) override;

 private:
  std::vector<std::unique_ptr<Layer>> layers_;
};

/// y = x + f(x). The sum is written over f's output; backward writes over f's input gradient.
class Residual final : public Layer {
 public:
  explicit Residual(std::unique_ptr<Layer> f) : f_(std::move(f)) {}
  Tensor forward(Tensor x, Context& context, Stash& stash) override;
  Tensor backward(Tensor dy, Context& context, Stash& stash, Wanted wanted) override;
  void complete(Context& context, Stash& stash) override { f_->complete(context, stash); }

 private:
  std::unique_ptr<Layer> f_;
};

}  // namespace shardmark
