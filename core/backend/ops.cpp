#include "backend/ops.hpp"

#include "backend/op_access.hpp"

namespace shardmark {
namespace {

constexpr std::array<std::string_view, std::variant_size_v<Op>> names{"matmul",
                                                                      "sum_tree",
                                                                      "column_sum",
                                                                      "layer_norm",
                                                                      "layer_norm_input",
                                                                      "layer_norm_weight",
                                                                      "gelu",
                                                                      "gelu_input",
                                                                      "relu",
                                                                      "relu_input",
                                                                      "attention",
                                                                      "attention_input",
                                                                      "embedding",
                                                                      "embedding_weight",
                                                                      "position_weight",
                                                                      "dropout",
                                                                      "cross_entropy",
                                                                      "squared_error",
                                                                      "fill",
                                                                      "copy",
                                                                      "norm_leaves",
                                                                      "tree_total",
                                                                      "decide",
                                                                      "flag_nonfinite",
                                                                      "sgd_update",
                                                                      "adamw_update",
                                                                      "convolution",
                                                                      "convolution_input",
                                                                      "convolution_weight",
                                                                      "average_pool",
                                                                      "average_pool_input",
                                                                      "batch_moments",
                                                                      "merge_moments",
                                                                      "batch_norm",
                                                                      "batch_norm_weight",
                                                                      "batch_norm_input",
                                                                      "running_update",
                                                                      "inverse_deviation",
                                                                      "softmax_part",
                                                                      "sliced_cross_entropy"};
static_assert(!names.back().empty(), "every operation has a name");

/// Where a view's elements lie in each period of `pitch` bytes.
struct Comb {
  std::int64_t run = 0;    // bytes side by side
  std::int64_t pitch = 0;  // bytes from run to run; 0: a single run
};

/// Merges dense trailing dimensions into one run. An irregular view becomes one run over its whole extent.
Comb comb_of(View const& view) {
  std::int64_t const bytes = std::int64_t(width(view.dtype));
  std::int64_t run = 1, pitch = 0;
  for (int i = view.rank - 1; i >= 0; --i) {
    std::int64_t const n = view.shape[std::size_t(i)], stride = view.stride[std::size_t(i)];
    if (n == 1) continue;
    if (pitch == 0 && stride == run)
      run *= n;
    else if (pitch == 0 && stride > run)
      pitch = stride;
    else if (pitch == 0 || stride % pitch != 0) {
      auto const [first, last] = extent(view);
      return {last - first, 0};
    }
  }
  return {run * bytes, pitch * bytes};
}

}  // namespace

std::string_view name_of_kind(std::size_t kind) { return names[kind]; }
std::string_view name(Op const& op) { return name_of_kind(op.index()); }

Views reads(Op const& op) {
  Views out;
  if (auto const* sum = std::get_if<SumTree>(&op)) {
    out.many = sum->in;
    return out;
  }
  each_view(op, [&](View const& view, Access access) {
    if (reads_from(access)) out.add(view);
  });
  return out;
}

Views writes(Op const& op) {
  Views out;
  each_view(op, [&](View const& view, Access access) {
    if (writes_to(access)) out.add(view);
  });
  return out;
}

double bytes(Op const& op) {
  double total = 0;
  each_view(op, [&](View const& view, Access access) {
    total += double(view.bytes()) * (double(reads_from(access)) + double(writes_to(access)));
  });
  return total;
}

bool share_elements(View const& a, View const& b) {
  if (!overlap(a, b)) return false;
  Comb const x = comb_of(a), y = comb_of(b);
  if (x.pitch == 0 || x.pitch != y.pitch) return true;
  // Both repeat with one period: compare positions in the period, on a circle.
  std::int64_t const apart = ((b.data - a.data) % x.pitch + x.pitch) % x.pitch;
  return apart < x.run || apart + y.run > x.pitch;
}

}  // namespace shardmark
