// Floating-point operations of each Op. Matmuls and attention are exact; elsewhere every arithmetic step of the formula counts one
// an element, a transcendental function too.

#include "backend/op_access.hpp"

namespace shardmark {
namespace {

double n(View const& view) { return double(view.elements()); }

/// Multiply-adds of one S x S x d product per head, of which the causal half (diagonal included) is computed.
double causal_half(View const& q) {
  double const s = double(q.shape[1]);
  return double(q.shape[0] * q.shape[2] * q.shape[3]) * s * (s + 1) / 2;
}

struct Flops {
  static constexpr double gelu_steps = 8, gelu_gradient_steps = 14;

  double operator()(Matmul const& o) const {
    double const k = double(o.a.shape[o.ta == Transpose::no ? 1 : 0]);
    double const after = o.epilogue == Epilogue::none ? 0 : o.epilogue == Epilogue::bias ? 1 : 1 + gelu_steps;
    return n(o.c) * (2 * k + after + double(o.write == Write::accumulate));
  }
  double operator()(SumTree const& o) const { return n(o.out) * double(o.in.size() - 1); }
  double operator()(ColumnSum const& o) const { return n(o.x); }
  double operator()(LayerNorm const& o) const { return 8 * n(o.x); }
  double operator()(LayerNormInput const& o) const { return 11 * n(o.x); }
  double operator()(LayerNormWeight const& o) const { return 5 * n(o.x); }
  double operator()(Gelu const& o) const { return gelu_steps * n(o.x); }
  double operator()(GeluInput const& o) const { return gelu_gradient_steps * n(o.x); }
  double operator()(Relu const& o) const { return n(o.x); }
  double operator()(ReluInput const& o) const { return n(o.dx); }
  // Two products forward (scores, values); five backward (scores again, dp, dv, dq, dk).
  double operator()(Attention const& o) const { return 2 * 2 * causal_half(o.q); }
  double operator()(AttentionInput const& o) const { return 5 * 2 * causal_half(o.q); }
  double operator()(Embedding const& o) const { return o.positions ? n(o.y) : 0; }
  double operator()(EmbeddingWeight const& o) const { return n(o.dy); }
  double operator()(PositionWeight const& o) const { return n(o.dy); }
  double operator()(Dropout const& o) const { return n(o.x); }
  double operator()(CrossEntropy const& o) const { return n(o.logits) * (o.dlogits ? 7 : 4); }
  double operator()(SoftmaxPart const& o) const { return 4 * n(o.logits); }
  double operator()(SlicedCrossEntropy const& o) const { return n(o.parts) + (o.dlogits ? 5 * n(o.logits) : 0); }
  double operator()(SquaredError const& o) const { return n(o.y) * (o.dy ? 5 : 4); }
  double operator()(Fill const&) const { return 0; }
  double operator()(Copy const&) const { return 0; }
  double operator()(NormLeaves const& o) const { return 2 * n(o.x); }
  double operator()(TreeTotal const& o) const { return n(o.x); }
  double operator()(Decide const&) const { return 0; }
  double operator()(FlagNonFinite const&) const { return 0; }
  double operator()(SgdUpdate const& o) const { return n(o.weight) * (o.momentum ? 5 : 3) + (o.nesterov ? 2 * n(o.weight) : 0); }
  double operator()(AdamWUpdate const& o) const { return 14 * n(o.weight); }

  // The frame of zeros counts too, as in a product.
  double operator()(Convolution const& o) const { return 2 * n(o.y) * window(o.w); }
  double operator()(ConvolutionInput const& o) const { return 2 * n(o.dy) * window(o.w); }
  double operator()(ConvolutionWeight const& o) const { return 2 * n(o.dy) * window(o.dw); }
  double operator()(AveragePool const& o) const { return n(o.x); }
  double operator()(AveragePoolInput const& o) const { return n(o.dx); }
  double operator()(BatchMoments const& o) const { return 4 * n(o.x); }
  double operator()(MergeMoments const& o) const { return 10 * n(o.pieces); }
  double operator()(BatchNorm const& o) const { return 4 * n(o.x); }
  double operator()(BatchNormWeight const& o) const { return 5 * n(o.x); }
  double operator()(BatchNormInput const& o) const { return 8 * n(o.x); }
  double operator()(RunningUpdate const& o) const { return 3 * n(o.moments); }
  double operator()(InverseDeviation const& o) const { return 3 * n(o.rstd); }

 private:
  /// Multiply-adds of one output element.
  static double window(View const& w) { return double(w.shape[1] * w.shape[2] * w.shape[3]); }
};

}  // namespace

double flops(Op const& op) { return std::visit(Flops{}, op); }

}  // namespace shardmark
