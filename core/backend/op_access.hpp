#pragma once
// Which views an operation reads and writes, listed once; reads(), writes(), bytes(), validate() and the decorators derive from it.

#include <type_traits>
#include <utility>

#include "backend/ops.hpp"

namespace shardmark {

/// update: read and written, like an accumulated output or an optimizer's state.
enum class Access : std::uint8_t { read, write, update };

constexpr bool reads_from(Access access) { return access != Access::write; }
constexpr bool writes_to(Access access) { return access != Access::read; }
constexpr Access access_of(Write write) { return write == Write::overwrite ? Access::write : Access::update; }

/// Hands the views of one operation to `f(View const&, Access)`; absent ones are left out.
template <class F>
struct ViewLister {
  F& f;

  template <class... V>
  void in(V const&... views) const {
    (give(views, Access::read), ...);
  }
  template <class... V>
  void out(V const&... views) const {
    (give(views, Access::write), ...);
  }
  template <class... V>
  void both(V const&... views) const {
    (give(views, Access::update), ...);
  }
  template <class... V>
  void sums(Write write, V const&... views) const {
    (give(views, access_of(write)), ...);
  }
  void give(View const& view, Access access) const {
    if (view) f(view, access);
  }

  void operator()(Matmul const& o) const { in(o.a, o.b, o.bias), sums(o.write, o.c), out(o.aux); }
  void operator()(SumTree const& o) const {
    for (View const& v : o.in) in(v);
    out(o.out);
  }
  void operator()(ColumnSum const& o) const { in(o.x), sums(o.write, o.y); }
  void operator()(LayerNorm const& o) const { in(o.x, o.gamma, o.beta), out(o.y, o.mean, o.rstd); }
  void operator()(LayerNormInput const& o) const { in(o.dy, o.x, o.gamma, o.mean, o.rstd), out(o.dx); }
  void operator()(LayerNormWeight const& o) const { in(o.dy, o.x, o.mean, o.rstd), sums(o.write, o.dgamma, o.dbeta); }
  void operator()(Gelu const& o) const { in(o.x), out(o.y); }
  void operator()(GeluInput const& o) const { in(o.x, o.dy), out(o.dx); }
  void operator()(Relu const& o) const { in(o.x), out(o.y); }
  void operator()(ReluInput const& o) const { in(o.y, o.dy), out(o.dx); }
  void operator()(Attention const& o) const { in(o.q, o.k, o.v), out(o.y, o.lse); }
  void operator()(AttentionInput const& o) const { in(o.q, o.k, o.v, o.y, o.lse, o.dy), out(o.dq, o.dk, o.dv); }
  void operator()(Embedding const& o) const { in(o.ids, o.table, o.positions), out(o.y); }
  void operator()(EmbeddingWeight const& o) const { in(o.ids, o.dy), sums(o.write, o.dtable); }
  void operator()(PositionWeight const& o) const { in(o.dy), sums(o.write, o.dpositions); }
  void operator()(Dropout const& o) const { in(o.x, o.samples), out(o.y); }
  void operator()(CrossEntropy const& o) const { in(o.logits, o.target), both(o.tally), out(o.dlogits); }
  void operator()(SoftmaxPart const& o) const { in(o.logits, o.target), out(o.part); }
  void operator()(SlicedCrossEntropy const& o) const { in(o.logits, o.target, o.parts), both(o.tally), out(o.dlogits); }
  void operator()(SquaredError const& o) const { in(o.y, o.target), both(o.tally), out(o.dy); }
  void operator()(Fill const& o) const { out(o.to); }
  void operator()(Copy const& o) const { in(o.from), out(o.to); }
  void operator()(NormLeaves const& o) const { in(o.x), out(o.leaves); }
  void operator()(TreeTotal const& o) const { in(o.x), out(o.out); }
  void operator()(Decide const& o) const { in(o.norm_squared, o.totals), both(o.scalars); }
  void operator()(FlagNonFinite const& o) const { in(o.x), both(o.flag); }
  void operator()(SgdUpdate const& o) const { in(o.weight, o.gradient, o.scalars), both(o.momentum), out(o.out, o.compute); }
  void operator()(AdamWUpdate const& o) const { in(o.weight, o.gradient, o.scalars), both(o.first, o.second), out(o.out, o.compute); }
  void operator()(Convolution const& o) const { in(o.x, o.w), out(o.y); }
  void operator()(ConvolutionInput const& o) const { in(o.dy, o.w), out(o.dx); }
  void operator()(ConvolutionWeight const& o) const { in(o.dy, o.x), sums(o.write, o.dw); }
  void operator()(AveragePool const& o) const { in(o.x), out(o.y); }
  void operator()(AveragePoolInput const& o) const { in(o.dy), out(o.dx); }
  void operator()(BatchMoments const& o) const { in(o.x), out(o.moments); }
  void operator()(MergeMoments const& o) const { in(o.pieces), out(o.merged, o.mean, o.rstd); }
  void operator()(BatchNorm const& o) const { in(o.x, o.mean, o.rstd, o.gamma, o.beta), out(o.y); }
  void operator()(BatchNormWeight const& o) const { in(o.dy, o.x, o.mean, o.rstd), sums(o.write, o.dgamma, o.dbeta); }
  void operator()(BatchNormInput const& o) const { in(o.dy, o.x, o.gamma, o.mean, o.rstd, o.dgamma, o.dbeta, o.moments), out(o.dx); }
  void operator()(RunningUpdate const& o) const { in(o.moments), both(o.mean, o.variance, o.batches); }
  void operator()(InverseDeviation const& o) const { in(o.variance), out(o.rstd); }
};

/// Calls f(View const&, Access) for each view that `op` touches, in the order of its members' roles: read, then written.
template <class F>
void each_view(Op const& op, F&& f) {
  std::visit(ViewLister<std::remove_reference_t<F>>{f}, op);
}

/// The same for an operation of the caller's own, whose views may be changed. SumTree's inputs must be the caller's own too.
template <class F>
void each_view(Op& op, F&& f) {
  each_view(std::as_const(op), [&](View const& view, Access access) { f(const_cast<View&>(view), access); });
}

/// Name of the operations at `kind` = Op::index().
std::string_view name_of_kind(std::size_t kind);

/// Whether two views can hold a common element. Exact for slices of one matrix that lie side by side (q, k and v in one buffer),
/// whose extents interleave; otherwise overlapping extents count.
bool share_elements(View const& a, View const& b);

/// The view's elements in one row-major run of the leading dimensions: product of all but the last.
inline std::int64_t rows_of(View const& view) {
  std::int64_t rows = 1;
  for (int i = 0; i + 1 < view.rank; ++i) rows *= view.shape[std::size_t(i)];
  return rows;
}
/// Length of the last dimension.
inline std::int64_t columns_of(View const& view) { return view.rank == 0 ? 0 : view.shape[view.rank - 1u]; }

}  // namespace shardmark
