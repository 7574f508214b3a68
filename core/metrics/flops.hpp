#pragma once
// Floating-point operations of a training step by the field's two conventions. 64-bit: 300000 x 8192 embeddings exceed 32 bits.

#include <cstdint>

namespace shardmark {

struct GptFlopsShape {
  std::int64_t layers = 0, hidden = 0, seq = 0, vocab = 0;
  std::int64_t parameters = 0;
  std::int64_t parameters_embedding = 0;  // token and position tables, which do no arithmetic
};

/// Forward and backward, per token.
struct FlopsPerToken {
  std::int64_t torchtitan = 0;  // 6 (N - N_embedding) + 12 L h s: no causal discount, no recomputation
  std::int64_t megatron = 0;    // matmuls alone, causal attention halved: 72 L h^2 + 6 L h s + 6 h V (Narayanan et al. 2021)
};
FlopsPerToken gpt_flops_per_token(GptFlopsShape const& shape);

/// A chain of linear layers: 6 a parameter and sample (2 forward, 4 backward).
std::int64_t mlp_flops_per_sample(std::int64_t parameters);
/// Forward, and twice as much for the gradients of inputs and weights.
std::int64_t convnet_flops_per_sample(double forward_flops);

}  // namespace shardmark
