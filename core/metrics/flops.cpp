#include "metrics/flops.hpp"

namespace shardmark {

FlopsPerToken gpt_flops_per_token(GptFlopsShape const& shape) {
  auto const [layers, hidden, seq, vocab, parameters, embedding] = shape;
  return {.torchtitan = 6 * (parameters - embedding) + 12 * layers * hidden * seq,
          .megatron = 72 * layers * hidden * hidden + 6 * layers * hidden * seq + 6 * hidden * vocab};
}

std::int64_t mlp_flops_per_sample(std::int64_t parameters) { return 6 * parameters; }

std::int64_t convnet_flops_per_sample(double forward_flops) { return 3 * std::int64_t(forward_flops); }

}  // namespace shardmark
