#pragma once
// Operations are data. A backend runs them; decorators watch, perturb, bound or skip them.
//
// Shapes are row-major; T = rows x sequence positions. A View that is absent (`!view`) means "not asked for".
// Every operation accepts zero-size pieces: outputs of an empty sum become +0 (Write::overwrite) or stay (accumulate).
// Element types: all floating views of one operation share one type (fp64, fp32 or bf16) unless said otherwise;
// bf16 sums in fp32; statistics (mean, rstd, lse) and gradients of weights have the accumulator's type.

#include <array>
#include <cstdint>
#include <span>
#include <string_view>
#include <variant>

#include "base/random.hpp"
#include "tensor/view.hpp"

namespace shardmark {

enum class Transpose : std::uint8_t { no, yes };
enum class Epilogue : std::uint8_t { none, bias, bias_gelu };

/// c[M,N] (+)= op(a)[M,K] op(b)[K,N], then the epilogue: + bias[N]; bias_gelu: aux[M,N] = c + bias, c = gelu(aux) of the rounded
/// aux; aux may be absent (evaluation). An epilogue needs Write::overwrite. Accumulating adds the finished sum to c.
/// a, b, c may have any row stride; the last dimension is dense. c may be of the accumulator's type.
/// The deterministic path's bits don't depend on how M or N are split.
struct Matmul {
  View a, b, c;
  Transpose ta = Transpose::no, tb = Transpose::no;
  Write write = Write::overwrite;
  Epilogue epilogue = Epilogue::none;
  View bias, aux;
};

/// out = T(in[0], ..., in[n-1]) elementwise, the canonical tree of base/sums.hpp; n >= 1; out may be any of `in`.
/// The one fixed-order reduction: gradients, residual additions and every communicator use it. Any type; contiguous.
struct SumTree {
  std::span<View const> in;
  View out;
};

/// y[N] (+)= sum over m of x[M,N]; a fixed order by the logical row index (bias gradients).
struct ColumnSum {
  View x, y;
  Write write = Write::overwrite;
};

/// y = gamma (x - mean) rstd + beta over the last dimension (Ba et al. 2016). x, y [T,H]; mean, rstd [T].
struct LayerNorm {
  View x, gamma, beta, y, mean, rstd;
  double epsilon = 1e-5;
};
/// dx = rstd (g - mean(g) - xhat mean(g xhat)), g = dy gamma.
struct LayerNormInput {
  View dy, x, gamma, mean, rstd, dx;
};
/// dgamma (+)= sum dy xhat, dbeta (+)= sum dy, over T.
struct LayerNormWeight {
  View dy, x, mean, rstd, dgamma, dbeta;
  Write write = Write::overwrite;
};

/// y = gelu(x), the tanh form of GPT-2 (Hendrycks and Gimpel 2016): x/2 (1 + tanh(sqrt(2/pi) (x + 0.044715 x^3))).
struct Gelu {
  View x, y;
};
/// dx = dy gelu'(x); dx may be dy.
struct GeluInput {
  View x, dy, dx;
};
/// y = max(x, 0); y may be x.
struct Relu {
  View x, y;
};
/// dx = y > 0 ? dy : 0; dx may be dy.
struct ReluInput {
  View y, dy, dx;
};

/// Causal attention. q, k, v, y [B,S,heads,d] with any strides but a dense last dimension; lse [B,heads,S] = log-sum-exp.
/// y_i = sum_{j <= i} softmax_j(scale q_i k_j) v_j. Never holds S x S beyond a tile.
struct Attention {
  View q, k, v, y, lse;
  double scale = 1;
};
/// Gradients of Attention; recomputes the probabilities from lse.
struct AttentionInput {
  View q, k, v, y, lse, dy, dq, dk, dv;
  double scale = 1;
};

/// Rows [first, first + n) of a table with `vocabulary` rows, n those of the table that goes with it; vocabulary 0: the whole table.
struct TableSlice {
  std::int64_t first = 0, vocabulary = 0;
};
/// y[b,s,:] = table[ids[b,s],:] (+ positions[s,:]). ids [B,S] i32, y [B,S,H], table [V,H], positions [>=S,H] or absent.
/// Of a slice of the table: y is +0 where another slice has the id, without its position, so that the slices' sum is y, bit for bit.
struct Embedding {
  View ids, table, positions, y;
  TableSlice slice = {};
};
/// dtable[v,:] (+)= sum of dy[t,:] with ids[t] = v, in ascending t; ids of other slices are passed over.
struct EmbeddingWeight {
  View ids, dy, dtable;
  Write write = Write::overwrite;
  TableSlice slice = {};
};
/// dpositions[s,:] (+)= sum over b of dy[b,s,:], in ascending b; rows past S become 0 on overwrite.
struct PositionWeight {
  View dy, dpositions;
  Write write = Write::overwrite;
};

/// y = keep(row, e) ? x / (1 - p) : 0, for x, y [rows, ...]; used forward on x and backward on dy; y may be x.
/// The mask is a pure function of (seed, layer, samples[row,0] = update, samples[row,1] = global sample id, e), e the element's
/// index in the *full* tensor of one sample (dropout_key.hpp): with Randoms r{seed, Purpose::dropout,
/// dropout_stream(layer, update, sample)}, e is kept when r.block(e / 4)[e % 4] >= p 2^32. 1 / (1 - p) is rounded once, then
/// multiplied. `first_element` and `full_width` place a shard of the last dimension in the full tensor: the local element
/// (line, column) of a row is e = line * full_width + first_element + column.
struct Dropout {
  View x, y, samples;  // samples [rows,2] i64
  double p = 0;
  std::uint64_t seed = 0, layer = 0;
  std::int64_t first_element = 0, full_width = 0;  // 0: not sharded
};

/// Softmax cross-entropy over the last dimension. logits [T,V], target [T] i32, -1: not counted (its dlogits are 0).
/// tally f64[3] += {sum of losses, counted, correct (argmax = target, the lowest index wins)}. dlogits = (softmax - onehot) scale; it may
/// be logits itself, or absent (evaluation). The sum over rows is a fixed tree, in fp64.
struct CrossEntropy {
  View logits, target, tally, dlogits;
  double scale = 1;
};
/// What one slice of the vocabulary knows of a softmax cross-entropy, columns [first, first + W) (Shoeybi et al. 2019, section 3).
/// logits [T,W]; part [T,4], the accumulator's type: {sum of e^(logit - highest), highest logit, logit of the target, place of the target}.
/// place 0: not in this slice, and its logit is 0; 1: in it; 2: in it, and the highest (the lowest index wins).
/// W = 0: {0, lowest fp32, 0, 0}.
inline constexpr std::int64_t softmax_part_size = 4;
struct SoftmaxPart {
  View logits, target, part;
  std::int64_t first = 0;
};
/// CrossEntropy from the parts [R,T,4] of all slices, in their order; each slice adds the whole loss to its tally. logits, dlogits [T,W]:
/// of this slice alone. Parts are merged in fp64, the sums in the canonical tree.
struct SlicedCrossEntropy {
  View logits, target, parts, tally, dlogits;
  std::int64_t first = 0;
  double scale = 1;
};
/// loss = (y - target)^2 / 2 summed over elements; y, target, dy alike. tally f64[3] += {sum, rows, 0}; dy = (y - target) scale.
struct SquaredError {
  View y, target, tally, dy;
  double scale = 1;
};

/// Windows that slide over an image: `height` x `width`, moved by `stride`, the image framed by `padding` zeros on each side.
struct SlidingWindow {
  std::int64_t height = 3, width = 3, stride = 1, padding = 0;
  /// Positions along an extent: floor((extent + 2 padding - window) / stride) + 1, at least 0.
  std::int64_t down(std::int64_t extent) const { return positions(extent, height); }
  std::int64_t across(std::int64_t extent) const { return positions(extent, width); }
  /// Elements of a window over `depth` channels.
  std::int64_t elements(std::int64_t depth) const { return height * width * depth; }

 private:
  std::int64_t positions(std::int64_t extent, std::int64_t window) const {
    std::int64_t const room = extent + 2 * padding - window;
    return extent == 0 || room < 0 ? 0 : room / stride + 1;
  }
};

// Images are [B,H,W,C], channels last: a convolution is then a matmul whose rows are positions (B OH OW), so its bits don't depend on
// how the batch is split, and each row of a window is one run of memory. All image views are contiguous.

/// y[b,i,j,o] = sum over (k,l,c) of x[b, i stride + k - padding, j stride + l - padding, c] w[o,k,l,c], a correlation, as PyTorch's
/// Conv2d. x [B,H,W,C], w [O,height,width,C], y [B,OH,OW,O].
struct Convolution {
  View x, w, y;
  SlidingWindow window;
};
/// dx of Convolution. Overwrites.
struct ConvolutionInput {
  View dy, w, dx;
  SlidingWindow window;
};
/// dw (+)= sum over positions of dy times the window of x.
struct ConvolutionWeight {
  View dy, x, dw;
  SlidingWindow window;
  Write write = Write::overwrite;
};

/// Means of windows side by side (stride = window, no padding); rows and columns that fill no window are left out.
/// x [B,H,W,C], y [B, H / height, W / width, C].
struct AveragePool {
  View x, y;
  std::int64_t height = 2, width = 2;
};
/// dx = dy / (height width) of the element's window, 0 outside of all. Overwrites.
struct AveragePoolInput {
  View dy, dx;
  std::int64_t height = 2, width = 2;
};

/// Moments of a batch by channel, packed as f64 [1 + 2C]: {n, mean[C], M2[C]}, M2 = sum (x - mean)^2; they cross ranks as they are.
/// x [T,C]. n = 0: all zero.
struct BatchMoments {
  View x, moments;
};
/// Merges pieces f64 [R, 1 + 2C] in the order of their rows (Chan, Golub and LeVeque 1979; validation rule 15):
/// merged f64 [1 + 2C], mean [C], rstd [C] = 1 / sqrt(M2 / n + epsilon), with n the merged count.
struct MergeMoments {
  View pieces, merged, mean, rstd;
  double epsilon = 1e-5;
};
/// y = gamma (x - mean) rstd + beta by channel (Ioffe and Szegedy 2015). x, y [T,C]; the rest [C].
struct BatchNorm {
  View x, mean, rstd, gamma, beta, y;
};
/// dgamma (+)= sum dy xhat, dbeta (+)= sum dy, over T: also the sums that BatchNormInput needs.
struct BatchNormWeight {
  View dy, x, mean, rstd, dgamma, dbeta;
  Write write = Write::overwrite;
};
/// dx = gamma rstd (dy - dbeta / n - xhat dgamma / n): dgamma, dbeta summed over all that `moments` counts; n is its first element.
/// dx may be dy.
struct BatchNormInput {
  View dy, x, gamma, mean, rstd, dgamma, dbeta, moments, dx;
};
/// What evaluation normalises with: mean += momentum (batch mean - mean), variance likewise with M2 / (n - 1), batches += 1.
/// n = 1: the variance stays, since one value has no unbiased one. n = 0: nothing changes. mean, variance [C], batches i64 [1].
struct RunningUpdate {
  View moments, mean, variance, batches;
  double momentum = 0.1;
};
/// rstd = 1 / sqrt(variance + epsilon). [C]
struct InverseDeviation {
  View variance, rstd;
  double epsilon = 1e-5;
};

struct Fill {
  View to;
  double value = 0;
};
/// Same shape, any strides; also casts (round to nearest even).
struct Copy {
  View from, to;
};

/// Norms, rule 13: leaves[i] = sum of x^2 over the i-th run of 1,024 elements of the *tensor's* flat index, in fp64 and a
/// fixed order. x is a contiguous piece that starts at `first` (a multiple of 1,024) of the full tensor. leaves f64.
inline constexpr std::int64_t norm_leaf = 1024;
struct NormLeaves {
  View x, leaves;
};
/// out[0] = T(x[0..n)) with the canonical tree; x, out f64; 0 for n = 0.
struct TreeTotal {
  View x, out;
};

/// Positions in the f64 scalars that live beside the weights (on the device, where there is one).
enum class Scalar : std::uint8_t { learning_rate, clip, skip, update, norm, loss, counted, correct, nonfinite };
inline constexpr std::int64_t scalars = 9;

/// One decision for the update, from totals that are already the same on every rank:
/// norm = sqrt(norm_squared[0]); nonfinite: totals[3] > 0 or norm not finite -> skip = 1;
/// clip = min(1, max_norm / (norm + 1e-6)) in fp64, 1 when max_norm <= 0; loss = totals[0] / totals[1];
/// update += 1 (skipped updates count: the learning-rate schedule follows the window, not the weights);
/// learning_rate = rate. totals f64[4] = {loss sum, counted, correct, non-finite flags}.
struct Decide {
  View norm_squared, totals, scalars;
  double max_norm = 0;
  double rate = 0;
};
/// flag f64[1] += 1 if any element of x is not finite.
struct FlagNonFinite {
  View x, flag;
};

/// g = clip g; SGD with decay, momentum and Nesterov as PyTorch defines them; out may be weight; compute (absent, or bf16) gets
/// a rounded copy. When skip is set, weights and state pass through unchanged. Momentum starts at 0, so the first update makes it g.
struct SgdUpdate {
  View weight, gradient, momentum, out, compute, scalars;  // momentum absent when the factor is 0
  double factor = 0, decay = 0;
  bool nesterov = false;
  std::int64_t decay_from = 0, decay_to = 0;  // elements of this piece that decay
};
/// AdamW (Loshchilov and Hutter 2019) as PyTorch defines it: w (1 - lr decay) - lr mhat / (sqrt(vhat) + epsilon). Bias corrections
/// from scalars' update, in fp64, rounded once.
struct AdamWUpdate {
  View weight, gradient, first, second, out, compute, scalars;
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, decay = 0;
  std::int64_t decay_from = 0, decay_to = 0;
};

using Op = std::variant<Matmul, SumTree, ColumnSum, LayerNorm, LayerNormInput, LayerNormWeight, Gelu, GeluInput, Relu, ReluInput, Attention,
                        AttentionInput, Embedding, EmbeddingWeight, PositionWeight, Dropout, CrossEntropy, SquaredError, Fill, Copy,
                        NormLeaves, TreeTotal, Decide, FlagNonFinite, SgdUpdate, AdamWUpdate, Convolution, ConvolutionInput,
                        ConvolutionWeight, AveragePool, AveragePoolInput, BatchMoments, MergeMoments, BatchNorm, BatchNormWeight,
                        BatchNormInput, RunningUpdate, InverseDeviation, SoftmaxPart, SlicedCrossEntropy>;

/// Up to 10 views; what an operation touches.
struct Views {
  std::array<View const*, 10> at{};
  std::size_t count = 0;
  std::span<View const> many;  // SumTree's inputs
  void add(View const& v) {
    if (v) at[count++] = &v;
  }
};

std::string_view name(Op const& op);
/// Views that `op` reads; an accumulated output is read too.
Views reads(Op const& op);
Views writes(Op const& op);
/// Floating-point operations: 2MNK for a matmul, 2 x causal half for attention's; others count one an element and step.
double flops(Op const& op);
/// Bytes read and written if every view moved once.
double bytes(Op const& op);
/// Checks shapes, types, strides and overlaps. @throws Error (precondition) that names the operation.
void validate(Op const& op);

}  // namespace shardmark
