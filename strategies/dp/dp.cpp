// Centralised data parallelism, a parameter server that also works (Li et al., OSDI 2014): rank 0 reads the samples, keeps master weights
// and the optimizer's state, adds all gradients and updates; the others compute.
//
//   M=1, three blocks, a bucket a block:
//   rank 0   | S F0 F1 F2 B2 B1 B0       + U w       S: samples are scattered, +: the sum of what was gathered
//   others   | S F0 F1 F2 B2 B1 B0           w       w: weights are broadcast
//   network  |               g2 g1 g0                g: gradients are gathered, as backward completes them

#include "strategies/dp/dp.hpp"

namespace shardmark {
namespace {

class Dp final : public Strategy {
 public:
  std::string name() const override { return "dp"; }
  std::optional<Refusal> refuse(Options const&, int) const override { return {}; }  // any number of replicas, as ddp
  MeshShape mesh(Options const&, int ranks) const override { return {.data = ranks}; }

  /// The algorithm: what serial does, on each replica; where sums are made and weights updated is its Sharing.
  Schedule plan(Options const& options, int) const override { return plan_sequential("dp", options.micros); }
  Axes reduced_over(int) const override { return axes(Axis::data); }
  Sharing sharing(Options const&) const override { return Sharing::root; }

  /// Each rank but the root sends its gradients once.
  Prediction predict(Options const& options, std::vector<BlockShape> const& blocks, int ranks) const override {
    Prediction out = predict_all_reduces(options, blocks, ranks);
    out.wire_elements = double(ranks - 1) * double(out.reduced_elements);
    return out;
  }
};

}  // namespace

std::unique_ptr<Strategy> make_dp() { return std::make_unique<Dp>(); }

}  // namespace shardmark
