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

#include "app/recompute_budget.hpp"
#include "model/tensor_part.hpp"
#include "strategies/tensor_parallel/traffic.hpp"

namespace shardmark {
namespace {

std::optional<Refusal> refuse_gpt(Options const& options, int ranks) {
  if (options.layer != LayerAlone::off)
    return Refusal{fmt::format("--layer {} with model gpt", name(options.layer)), "one layer alone is cut in the mlp", "use --model mlp"};
  if (options.sequence_parallel && options.seq % ranks != 0)
    return Refusal{fmt::format("--sequence-parallel with --seq {} on {} ranks", options.seq, ranks), "each rank has equally many rows",
                   fmt::format("start {} ranks, or change --seq", divisors(options.seq))};
  return {};
}

std::optional<Refusal> refuse_mlp(Options const& options) {
  if (options.sequence_parallel)
    return Refusal{"--sequence-parallel with model mlp", "its samples have no sequence", "leave it out, or use --model gpt"};
  if (options.layer != LayerAlone::off && options.layers < 2)
    return Refusal{fmt::format("--layer {} with --layers {}", name(options.layer), options.layers), "it cuts the second of them",
                   "use --layers 2"};
  return {};
}

class TensorParallel final : public Strategy {
 public:
  std::string name() const override { return "tensor_parallel"; }

  std::optional<Refusal> refuse(Options const& options, int ranks) const override {
    if (options.model == ModelKind::convnet && ranks > 1)
      return Refusal{fmt::format("model convnet on {} tensor-parallel ranks", ranks), "convolutions are not cut in this version",
                     "use --model mlp or gpt"};
    if (memory_budget(options.recompute) || options.recompute == "except-last-micro")
      return Refusal{fmt::format("--recompute {} with tensor parallelism", options.recompute),
                     "what it exchanges has no formula in this version", "use all, every:K, sqrt or selective"};
    bool const gpt = options.model == ModelKind::gpt;
    if (options.gather_output && options.layer != LayerAlone::column)
      return Refusal{"--gather-output without --layer column", "nothing else is gathered", "leave it out"};
    if (options.scatter_input && options.layer != LayerAlone::row)
      return Refusal{"--scatter-input without --layer row", "nothing else is scattered", "leave it out"};
    if (auto refusal = gpt ? refuse_gpt(options, ranks) : refuse_mlp(options)) return refusal;
    std::int64_t const cut = gpt ? options.heads : options.hidden;
    if (cut % ranks != 0)
      return Refusal{fmt::format("{} {} on {} tensor-parallel ranks", cut, gpt ? "heads" : "hidden columns", ranks),
                     "each rank has equally many", fmt::format("start {} ranks, or change --{}", divisors(cut), gpt ? "heads" : "hidden")};
    return {};
  }

  std::vector<std::string> offers() const override {
    return {"sequence-parallel", "tp-chunks", "layer", "gather-output", "scatter-input", "recompute"};
  }

  MeshShape mesh(Options const&, int ranks) const override { return {.tensor = ranks}; }

  /// What serial does; what crosses between ranks is inside the layers.
  Schedule plan(Options const& options, int) const override { return plan_sequential("tensor_parallel", options.micros); }

  Prediction predict(Options const& options, std::vector<BlockShape> const& blocks, int ranks) const override {
    Prediction out;
    out.traffic = tensor_traffic(options, blocks, ranks);
    return out;
  }
};

}  // namespace

std::unique_ptr<Strategy> make_tensor_parallel() { return std::make_unique<TensorParallel>(); }

}  // namespace shardmark
