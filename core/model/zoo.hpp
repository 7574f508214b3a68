#pragma once
// The models: mlp, convnet and gpt. Names are those that a PyTorch user expects (h.0.mlp.fc.weight); q, k and v are separate logical
// parameters that lie side by side.

#include "model/image_layers.hpp"
#include "model/layer.hpp"
#include "model/tensor_part.hpp"

namespace shardmark {

enum class Tied : std::uint8_t { no, yes };

/// training: Kaiming uniform (a = sqrt 5) for the mlp and the convnet; GPT-2's N(0, 0.02) with residual projections scaled by 1/sqrt(2L),
/// zero biases. verifying: random nonzero biases and gains, weights of unit fan-in variance, so that no fault hides behind a zero.
enum class InitialStyle : std::uint8_t { training, verifying };

struct GptConfig {
  std::int64_t layers = 4, hidden = 256, heads = 4, seq = 128, vocab = 256;
  double dropout = 0;  // of embeddings and of both residual branches
  Tied tied = Tied::no;
};
/// Pre-LN GPT-2 (Radford et al. 2019): blocks wte+wpe | h.0 .. h.L-1 | ln_f + lm_head + loss.
/// A part (Shoeybi et al. 2019): q, k, v, mlp.fc and the head cut by columns, attn.proj, mlp.proj and the token table by rows, heads shared
/// out; the rest are copies.
Model make_gpt(GptConfig const& config, DType dtype, std::uint64_t seed, InitialStyle style, TensorPart part = {});

/// Which of the mlp's layers a part cuts: all, in pairs, or layers.1 alone. What it puts out in columns is gathered, or taken by the next
/// layer, cut by rows; what it takes by columns is cut from a whole tensor, or made by the layer before, cut by columns.
enum class MlpCuts : std::uint8_t { pairs, column, column_gathered, row, row_scattered };

struct MlpConfig {
  std::int64_t layers = 4, hidden = 128, features = 64, classes = 10;
  double dropout = 0;
  MlpCuts cuts = MlpCuts::pairs;  // others than pairs need two layers
};
/// `layers` blocks of linear + ReLU, then a block of linear + softmax cross-entropy.
/// A part: pairs of layers cut by columns and by rows; the last layer, where it has no partner, is a copy.
Model make_mlp(MlpConfig const& config, DType dtype, std::uint64_t seed, InitialStyle style, TensorPart part = {});

struct ConvnetConfig {
  std::int64_t layers = 3, hidden = 16;  // blocks, channels
  ImageShape image;
  std::int64_t classes = 10;
};
/// `layers` blocks of 3 x 3 convolution, batch normalisation and ReLU, all but the last with 2 x 2 average pooling behind it while the
/// image is at least 2 x 2; then a block of global average pooling, linear and softmax cross-entropy. Average pooling has no ties, so its
/// gradient is a plain linear map that bounds can follow. Convolutions have no bias: batch normalisation would take it out again.
Model make_convnet(ConvnetConfig const& config, DType dtype, std::uint64_t seed, InitialStyle style);

}  // namespace shardmark
