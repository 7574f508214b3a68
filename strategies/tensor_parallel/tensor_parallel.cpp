// Tensor parallelism (Shoeybi et al., "Megatron-LM", 2019): all ranks work on every sample, each with a part of every large matrix. A
// matrix cut by columns is followed by one cut by rows, so that nothing has to be exchanged between them:
//
//   rank 0   x --> [ W1 columns 0 ] --> act --> [ W2 rows 0 ] --.
//                                                               (+) --> y = sum of both, on both ranks
//   rank 1   x --> [ W1 columns 1 ] --> act --> [ W2 rows 1 ] --'
//
//   backward: dy is whole on both ranks; dx is the sum of what each rank's columns give, (+) again.

#include "strategies/tensor_parallel/tensor_parallel.hpp"

#include <fmt/format.h>

#include "model/tensor_part.hpp"

namespace shardmark {
namespace {

class TensorParallel final : public Strategy {
 public:
  std::string name() const override { return "tensor_parallel"; }

  std::optional<Refusal> refuse(Options const& options, int ranks) const override {
    if (options.model == ModelKind::convnet && ranks > 1)
      return Refusal{fmt::format("model convnet on {} tensor-parallel ranks", ranks), "convolutions are not cut in this version",
                     "use --model mlp or gpt"};
    bool const gpt = options.model == ModelKind::gpt;
    std::int64_t const cut = gpt ? options.heads : options.hidden;
    if (cut % ranks != 0)
      return Refusal{fmt::format("{} {} on {} tensor-parallel ranks", cut, gpt ? "heads" : "hidden columns", ranks),
                     "each rank has equally many", fmt::format("start {} ranks, or change --{}", divisors(cut), gpt ? "heads" : "hidden")};
    return {};
  }

  MeshShape mesh(Options const&, int ranks) const override { return {.tensor = ranks}; }

  /// What serial does; what crosses between ranks is inside the layers.
  Schedule plan(Options const& options, int) const override { return plan_sequential("tensor_parallel", options.micros); }

  Prediction predict(Options const&, std::vector<BlockShape> const&, int) const override { return {}; }
};

}  // namespace

std::unique_ptr<Strategy> make_tensor_parallel() { return std::make_unique<TensorParallel>(); }

}  // namespace shardmark
