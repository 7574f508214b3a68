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
  Axes reduced_over() const override { return axes(Axis::data); }

  Prediction predict(Options const& options, std::vector<BlockShape> const& blocks, int ranks) const override {
    Prediction out;
    for (BlockShape const& block : blocks)
      for (std::int64_t n : block.elements) out.reduced_elements += n;
    int const times = options.reduce_order == Inside::replicas ? options.micros : 1;
    out.reduced_elements *= times;
    out.wire_elements = 2.0 * (ranks - 1) / ranks * double(out.reduced_elements);
    out.reductions = count_buckets(blocks, bucket_rule(options)) * times;
    return out;
  }

 private:
  /// Greedy filling in backward order; the closed form that the counted reductions must equal.
  static std::int64_t count_buckets(std::vector<BlockShape> const& blocks, BucketRule const& rule) {
    std::vector<std::int64_t> bytes;
    for (auto block = blocks.rbegin(); block != blocks.rend(); ++block)
      for (std::int64_t n : block->elements) bytes.push_back(n * std::int64_t(rule.element_bytes));
    std::int64_t buckets = 0, open = 0;
    for (std::size_t i = 0; i < bytes.size(); ++i) {
      std::int64_t const cap = buckets == 1 ? rule.first_cap_bytes : rule.cap_bytes;
      bool const alone = rule.last_alone && i + 1 == bytes.size();
      if (buckets == 0 || open + bytes[i] > cap || alone) {
        ++buckets;
        open = 0;
      }
      open += bytes[i];
    }
    return buckets;
  }
};

}  // namespace

std::unique_ptr<Strategy> make_ddp() { return std::make_unique<Ddp>(); }

}  // namespace shardmark
