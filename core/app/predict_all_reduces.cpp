#include "app/strategy.hpp"

namespace shardmark {
namespace {

/// Greedy filling in backward order; the closed form that the counted reductions must equal.
std::int64_t count_buckets(std::vector<BlockShape> const& blocks, BucketRule const& rule) {
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

}  // namespace

Prediction predict_all_reduces(Options const& options, std::vector<BlockShape> const& blocks, int ranks) {
  Prediction out;
  for (BlockShape const& block : blocks)
    for (std::int64_t n : block.elements) out.reduced_elements += n;
  int const times = options.reduce_order == Inside::replicas ? options.micros : 1;
  out.reduced_elements *= times;
  out.wire_elements = 2.0 * (ranks - 1) / ranks * double(out.reduced_elements);
  out.reductions = count_buckets(blocks, bucket_rule(options)) * times;
  return out;
}

}  // namespace shardmark
