#pragma once
// What a set of kernels compiled for one instruction set offers: plain pointers in, nothing of the rest of the system.
// cpu_backend.cpp turns operations into these calls; each vector width compiles all of them from the same .inl files.
//
// T is the type that numbers are stored in. Arithmetic, sums and statistics have its accumulator's type: bf16 is widened when it is
// loaded, and rounded to nearest even when it is stored.
//
// Bits don't depend on how a caller cuts a range, nor on addresses.

#include <cstdint>
#include <string_view>

#include "backend/bfloat16.hpp"
#include "backend/cpu/scratch.hpp"
#include "backend/ops.hpp"
#include "tensor/stream.hpp"

namespace shardmark::cpu {

template <class A, class B = A, class C = A>
struct MatmulCall {
  A const* a;
  B const* b;
  C* c;
  std::int64_t lda, ldb, ldc, m, n, k;
  Transpose ta = Transpose::no, tb = Transpose::no;
  Write write = Write::overwrite;
  Epilogue epilogue = Epilogue::none;
  A const* bias = nullptr;
  C* aux = nullptr;
  std::int64_t ldaux = 0;
};

/// What one row adds to the tally.
struct RowLoss {
  double loss = 0;
  bool correct = false;
};

/// What one slice of a row knows of its softmax, and whether `target` (< 0: it lies elsewhere) is the first of the highest.
struct RowPart {
  double highest = 0, sum = 0, wanted = 0;
  bool target_first = false;
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
  Accumulator<T>* lse;
  std::int64_t length, width;
  double scale;
  Accumulator<T>* sums;  // [length, width] for sums that y can't hold; unused where T is its own accumulator
};
template <class T>
struct AttentionInputCall {
  Rows<T const> q, k, v, y, dy;
  Accumulator<T> const* lse;
  Rows<T> dq, dk, dv;
  std::int64_t length, width;
  double scale;
  Accumulator<T>* sums;  // [3, length, width], likewise
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

/// Whose mask dropout uses: the parts of dropout_key.hpp.
struct KeepCall {
  std::uint64_t seed;
  std::uint64_t stream;     // philox_stream() of the sample's
  std::uint64_t threshold;  // words below it are dropped
};

/// Everything but the matmul and attention works on one row, or on any range of elements.
template <class T>
struct Kernels {
  using Index = std::int64_t;
  using Sum = Accumulator<T>;

  void (*matmul)(MatmulCall<T> const&, Scratch const&, Stream&);
  /// c in the accumulator's type.
  void (*matmul_sums)(MatmulCall<T, T, Sum> const&, Scratch const&, Stream&);
  void (*attention)(AttentionCall<T> const&, Scratch const&, Stream&);
  void (*attention_input)(AttentionInputCall<T> const&, Scratch const&, Stream&);

  void (*gelu)(T const* x, T* y, Index n);
  void (*gelu_input)(T const* x, T const* dy, T* dx, Index n);
  void (*relu)(T const* x, T* y, Index n);
  void (*relu_input)(T const* y, T const* dy, T* dx, Index n);

  /// y += x.
  void (*add)(T const* x, Sum* y, Index n);
  void (*add_sums)(Sum const* x, Sum* y, Index n);
  /// out = x + y.
  void (*sum_of_two)(T const* x, T const* y, T* out, Index n);
  /// out[i] = canonical tree over in[...][begin + i].
  void (*sum_tree)(std::span<View const> in, T* out, Index begin, Index n);
  /// Sum of squares of one leaf of rule 13.
  double (*norm_leaf)(T const* x, Index n);
  bool (*all_finite)(T const* x, Index n);

  void (*layer_norm)(T const* x, T const* gamma, T const* beta, T* y, Sum* mean, Sum* rstd, double epsilon, Index n);
  void (*layer_norm_input)(T const* dy, T const* x, T const* gamma, Sum mean, Sum rstd, T* dx, Index n);
  /// dgamma += dy xhat, dbeta += dy.
  void (*layer_norm_weight)(T const* dy, T const* x, Sum mean, Sum rstd, Sum* dgamma, Sum* dbeta, Index n);
  /// dlogits may be nullptr (evaluation) or logits.
  RowLoss (*cross_entropy)(T const* logits, Index target, double scale, T* dlogits, Index n);
  RowPart (*softmax_part)(T const* logits, Index target, Index n);
  /// dlogits = (e^(logits - highest) / sum - onehot) scale; target < 0: in another slice. dlogits may be logits.
  void (*softmax_gradient)(T const* logits, Index target, Sum highest, double sum, double scale, T* dlogits, Index n);

  /// y = keep > 0 ? x scale : 0; y may be x.
  void (*dropout)(T const* x, float const* keep, Sum scale, T* y, Index n);
};

/// Of master weights, elements [begin, end).
template <class T>
struct Updates {
  void (*sgd)(SgdCall<T> const&, Decay, std::int64_t begin, std::int64_t end);
  void (*adamw)(AdamWCall<T> const&, Decay, std::int64_t begin, std::int64_t end);
};

struct InstructionSet {
  std::string_view name;
  Kernels<float> f32;
  Kernels<double> f64;
  Kernels<bfloat16> bf16;
  Updates<float> update_f32;
  Updates<double> update_f64;
  /// Only the epilogue, on rows [begin, end) of a c that is already computed.
  void (*epilogue)(MatmulCall<float> const&, std::int64_t begin, std::int64_t end);
  /// Casts.
  void (*narrow)(float const* from, bfloat16* to, std::int64_t n);
  void (*widen)(bfloat16 const* from, float* to, std::int64_t n);
  /// keep[i] = 1 where dropout keeps element first + i of the sample, else 0.
  void (*keep)(KeepCall const&, std::int64_t first, float* keep, std::int64_t n);
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
