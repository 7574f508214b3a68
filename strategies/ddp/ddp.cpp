// Distributed data parallelism (Li et al., VLDB 2020): replicas, each with a piece of the global batch; gradients in buckets in
// backward order, all-reduced while the rest of backward runs.
//
//   one replica, M=2, three blocks, a bucket a block:
//   compute | F0 B0 F1 b2 b1 b0    U
//   network |             r2 r1 r0      r0, the last, is exposed
//
//   --reduce-order ranks-first: a reduction of each micro-batch's gradients before they are added up
//   compute | F0 b2 b1 b0    + F1 b2 b1 b0    + U
//   network |       r2 r1 r0         r2 r1 r0

#include "strategies/ddp/ddp.hpp"

#include <fmt/format.h>

namespace shardmark {
namespace {

class Ddp final : public Strategy {
 public:
  std::string name() const override { return "ddp"; }

  std::vector<std::string> offers() const override { return {"reduce-order"}; }

  std::optional<Refusal> refuse(Options const&, int) const override { return {}; }  // any number of replicas, empty ones too

  MeshShape mesh(Options const&, int ranks) const override { return {.data = ranks}; }

  /// The algorithm: each replica does what serial does; reduce is one all-reduce a bucket.
  Schedule plan(Options const& options, int) const override { return plan_sequential("ddp", options.micros); }
  Axes reduced_over(int) const override { return axes(Axis::data); }

  Prediction predict(Options const& options, std::vector<BlockShape> const& blocks, int ranks) const override {
    return predict_all_reduces(options, blocks, ranks);
  }
};

}  // namespace

std::unique_ptr<Strategy> make_ddp() { return std::make_unique<Ddp>(); }

}  // namespace shardmark
