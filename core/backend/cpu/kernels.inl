#pragma once
// All kernels for the vectors F32 and F64 of the file that includes this one.

#include "backend/cpu/attention.inl"
#include "backend/cpu/matmul.inl"
#include "backend/cpu/passes.inl"
#include "backend/cpu/rows.inl"

namespace shardmark::cpu {
namespace {

template <class V>
constexpr Kernels<typename V::Scalar> kernels_of() {
  return {.matmul = matmul<V>,
          .epilogue = epilogue_rows<V>,
          .attention = attention<V>,
          .attention_input = attention_input<V>,
          .gelu = gelu_pass<V>,
          .gelu_input = gelu_input_pass<V>,
          .relu = relu_pass<V>,
          .relu_input = relu_input_pass<V>,
          .add = add_pass<V>,
          .sum_tree = sum_tree_pass<V>,
          .norm_leaf = norm_leaf_pass<F64, typename V::Scalar>,
          .all_finite = all_finite_pass<V>,
          .layer_norm = layer_norm_row<V>,
          .layer_norm_input = layer_norm_input_row<V>,
          .layer_norm_weight = layer_norm_weight_row<V>,
          .cross_entropy = cross_entropy_row<V>,
          .sgd = sgd_pass<V>,
          .adamw = adamw_pass<V>};
}

}  // namespace
}  // namespace shardmark::cpu
