#pragma once
// What a set of kernels compiled for one instruction set offers: plain pointers in, nothing of the rest of the system.
// cpu_backend.cpp turns operations into these calls; each vector width compiles all of them from the same .inl files.
//
// Bits don't depend on how a caller cuts a range, nor on addresses.

#include <cstdint>
#include <string_view>

#include "backend/cpu/scratch.hpp"
#include "backend/ops.hpp"
#include "tensor/stream.hpp"

namespace shardmark::cpu {

template <class T>
struct MatmulCall {
  T const* a;
  T const* b;
  T* c;
  std::int64_t lda, ldb, ldc, m, n, k;
  Transpose ta = Transpose::no, tb = Transpose::no;
  Write write = Write::overwrite;
  Epilogue epilogue = Epilogue::none;
  T const* bias = nullptr;
  T* aux = nullptr;
  std::int64_t ldaux = 0;
};

/// What one row adds to the tally.
struct RowLoss {
  double loss = 0;
  bool correct = false;
};

/// q, k, v, ... of one (batch, head): row s starts at `at + s * stride`.
template <class T>
struct Rows {
  T* at;
  std::int64_t stride;
};
template <class T>
struct AttentionCall {
  Rows<T const> q, k, v;
  Rows<T> y;
  T* lse;
  std::int64_t length, width;
  double scale;
};
template <class T>
struct AttentionInputCall {
  Rows<T const> q, k, v, y, dy;
  T const* lse;
  Rows<T> dq, dk, dv;
  std::int64_t length, width;
  double scale;
};

enum class Decay : std::uint8_t { no, yes };

template <class T>
struct SgdCall {
  T const* weight;
  T const* gradient;
  T* momentum;  // nullptr when the factor is 0
  T* out;
  T clip, rate, factor, decay;
  bool nesterov;
};
template <class T>
struct AdamWCall {
  T const* weight;
  T const* gradient;
  T* first;
  T* second;
  T* out;
  T clip, beta1, rest1, beta2, rest2;  // rest = 1 - beta
  T shrink;                            // 1 - rate decay
  T step;                              // rate / (1 - beta1^t)
  T root_correction;                   // 1 / sqrt(1 - beta2^t)
  T epsilon;
};

/// Everything but the matmul and attention works on one row, or on any range of elements.
template <class T>
struct Kernels {
  using Index = std::int64_t;

  void (*matmul)(MatmulCall<T> const&, Scratch const&, Stream&);
  /// Only the epilogue, on rows [begin, end) of a c that is already computed.
  void (*epilogue)(MatmulCall<T> const&, Index begin, Index end);
  void (*attention)(AttentionCall<T> const&, Scratch const&, Stream&);
  void (*attention_input)(AttentionInputCall<T> const&, Scratch const&, Stream&);

  void (*gelu)(T const* x, T* y, Index n);
  void (*gelu_input)(T const* x, T const* dy, T* dx, Index n);
  void (*relu)(T const* x, T* y, Index n);
  void (*relu_input)(T const* y, T const* dy, T* dx, Index n);

  /// y += x.
  void (*add)(T const* x, T* y, Index n);
  /// out[i] = canonical tree over in[...][begin + i].
  void (*sum_tree)(std::span<View const> in, T* out, Index begin, Index n);
  /// Sum of squares of one leaf of rule 13.
  double (*norm_leaf)(T const* x, Index n);
  bool (*all_finite)(T const* x, Index n);

  void (*layer_norm)(T const* x, T const* gamma, T const* beta, T* y, T* mean, T* rstd, double epsilon, Index n);
  void (*layer_norm_input)(T const* dy, T const* x, T const* gamma, T mean, T rstd, T* dx, Index n);
  /// dgamma += dy xhat, dbeta += dy.
  void (*layer_norm_weight)(T const* dy, T const* x, T mean, T rstd, T* dgamma, T* dbeta, Index n);
  /// dlogits may be nullptr (evaluation) or logits.
  RowLoss (*cross_entropy)(T const* logits, Index target, double scale, T* dlogits, Index n);

  /// Elements [begin, end).
  void (*sgd)(SgdCall<T> const&, Decay, Index begin, Index end);
  void (*adamw)(AdamWCall<T> const&, Decay, Index begin, Index end);
};

struct InstructionSet {
  std::string_view name;
  Kernels<float> f32;
  Kernels<double> f64;
};

/// The best that this machine has. The scalar set is always there.
/// @param highest  "" or the best one to use.
InstructionSet const& choose_instruction_set(std::string_view highest);

/// Whether this processor runs them.
bool has_avx2();
bool has_avx512();

// One for each source file of kernels; nullptr where the processor's family lacks it.
InstructionSet const* scalar_kernels();
InstructionSet const* avx2_kernels();
InstructionSet const* avx512_kernels();

}  // namespace shardmark::cpu
