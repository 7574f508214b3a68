#pragma once
// All kernels for the vectors F32 and F64 of the file that includes this one.

#include "backend/cpu/attention.inl"
#include "backend/cpu/dropout.inl"
#include "backend/cpu/matmul.inl"
#include "backend/cpu/passes.inl"
#include "backend/cpu/rows.inl"

namespace shardmark::cpu {
namespace {

/// V computes, T is stored.
template <class V, class T = typename V::Scalar>
constexpr Kernels<T> kernels_of() {
  return {.matmul = matmul<V, T, T, T>,
          .matmul_sums = matmul<V, T, T, typename V::Scalar>,
          .attention = attention<V, T>,
          .attention_input = attention_input<V, T>,
          .gelu = gelu_pass<V, T>,
          .gelu_input = gelu_input_pass<V, T>,
          .relu = relu_pass<V, T>,
          .relu_input = relu_input_pass<V, T>,
          .add = add_pass<V, T>,
          .add_sums = add_pass<V, typename V::Scalar>,
          .sum_of_two = sum_of_two_pass<V, T>,
          .sum_tree = sum_tree_pass<V, T>,
          .norm_leaf = norm_leaf_pass<F64, T>,
          .all_finite = all_finite_pass<V, T>,
          .layer_norm = layer_norm_row<V, T>,
          .layer_norm_input = layer_norm_input_row<V, T>,
          .layer_norm_weight = layer_norm_weight_row<V, T>,
          .cross_entropy = cross_entropy_row<V, T>,
          .softmax_part = softmax_part_row<V, T>,
          .softmax_gradient = softmax_gradient_row<V, T>,
          .dropout = dropout_pass<V, T>};
}

constexpr InstructionSet all_kernels(std::string_view name) {
  return {.name = name,
          .f32 = kernels_of<F32>(),
          .f64 = kernels_of<F64>(),
          .bf16 = kernels_of<F32, bfloat16>(),
          .update_f32 = {sgd_pass<F32>, adamw_pass<F32>},
          .update_f64 = {sgd_pass<F64>, adamw_pass<F64>},
          .epilogue = epilogue_rows<F32>,
          .narrow = cast_pass<F32, float, bfloat16>,
          .widen = cast_pass<F32, bfloat16, float>,
          .keep = keep_pass};
}

}  // namespace
}  // namespace shardmark::cpu
