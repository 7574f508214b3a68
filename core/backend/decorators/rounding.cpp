#include "backend/decorators/rounding.hpp"

#include <algorithm>

#include "backend/decorators/rounding_parts.hpp"
#include "backend/op_access.hpp"
#include "backend/reference/loops_activation.hpp"
#include "backend/reference/loops_embedding.hpp"
#include "base/sums.hpp"

namespace shardmark {
namespace {

using rounding::Analysis;

double additions(std::int64_t terms) { return double(std::max<std::int64_t>(terms - 1, 0)); }

/// gelu is x/2 (1 + t), t = tanh(z): 1 + t cancels for negative x, and an error of z moves t by 1 - t^2.
double gelu_absolute(double x) {
  double const z = reference::GeluInner<double>::value(x), t = std::tanh(z);
  return std::abs(x) / 2 * (1 + std::abs(t) + (1 - t * t) * std::abs(z));
}

/// gelu' is (1 + t)/2 + x/2 (1 - t^2) z'.
double gelu_derivative_absolute(double x) {
  double const z = reference::GeluInner<double>::value(x), t = std::tanh(z);
  double const slope = std::abs(x) / 2 * reference::GeluInner<double>::derivative(x);
  double const moved = (1 - t * t) * std::abs(z);
  return (1 + std::abs(t) + moved) / 2 + slope * (1 + t * t + 2 * std::abs(t) * moved);
}

/// The most often that one token of a table with `rows` rows occurs.
std::int64_t largest_count(View const& ids, std::int64_t rows, TableSlice const& slice) {
  std::vector<std::int64_t> counts(std::size_t(rows), 0);
  for (std::int64_t t = 0; t < ids.elements(); ++t)
    if (std::int64_t const at = reference::token(ids, t, rows, slice); at >= 0) ++counts[std::size_t(at)];
  return counts.empty() ? 0 : *std::max_element(counts.begin(), counts.end());
}

struct Analyse {
  Analysis& to;

  Dense load(View const& view) const { return to.bench.load(view); }
  Dense load_absolute(View const& view) const { return to.bench.load_absolute(view); }

  void operator()(Matmul const& o) const {
    Dense a = load(o.a), b = load(o.b), product;
    if (o.epilogue == Epilogue::bias_gelu) product = to.bench.multiply(a, o.ta, b, o.tb);
    auto magnitude = [](double x) { return std::abs(x); };
    Dense sums = to.bench.multiply(a.apply(magnitude), o.ta, b.apply(magnitude), o.tb);
    double const terms = double(o.a.shape[o.ta == Transpose::no ? 1 : 0]);
    if (o.epilogue == Epilogue::none) return to.add(o.c, std::move(sums), terms, StoredAs::storage);

    Dense const bias = load(o.bias);
    std::int64_t const n = bias.elements();
    for (std::int64_t i = 0; i < sums.elements(); ++i) sums[i] += std::abs(bias[i % n]);
    if (o.epilogue == Epilogue::bias) return to.add(o.c, std::move(sums), terms, StoredAs::storage);

    // The product's error goes through gelu, and gelu adds its own.
    for (std::int64_t i = 0; i < product.elements(); ++i) {
      double const x = product[i] + bias[i % n];
      product[i] = std::abs(reference::gelu_derivative(x)) * sums[i] + gelu_absolute(x);
    }
    to.add(o.aux, std::move(sums), terms, StoredAs::storage);
    to.add(o.c, std::move(product), std::max(terms, 1.0), StoredAs::storage);
  }

  void operator()(SumTree const& o) const {
    if (o.in.size() < 2 || (o.out.dtype != DType::f64 && o.out.dtype != DType::f32 && o.out.dtype != DType::bf16)) return;
    Dense sums = load_absolute(o.out).apply([](double) { return 0.0; });
    for (View const& in : o.in) {
      Dense const x = load_absolute(in);
      for (std::int64_t i = 0; i < sums.elements(); ++i) sums[i] += x[i];
    }
    to.add(o.out, std::move(sums), tree_depth(std::int64_t(o.in.size())), StoredAs::storage);
  }

  void operator()(ColumnSum const& o) const {
    Dense x = load_absolute(o.x), sums(o.y.dims());
    to.bench.run(ColumnSum{x.view(), sums.view(), Write::overwrite});
    to.add(o.y, std::move(sums), additions(rows_of(o.x)), StoredAs::accumulator);
  }

  void operator()(LayerNorm const& o) const { rounding::layer_norm(to, o); }
  void operator()(LayerNormInput const& o) const { rounding::layer_norm_input(to, o); }
  void operator()(LayerNormWeight const& o) const { rounding::layer_norm_weight(to, o); }

  void operator()(Gelu const& o) const { to.add(o.y, std::move(load(o.x).apply(gelu_absolute)), 1, StoredAs::storage); }
  void operator()(GeluInput const& o) const {
    Dense x = load(o.x);
    Dense const dy = load_absolute(o.dy);
    for (std::int64_t i = 0; i < x.elements(); ++i) x[i] = dy[i] * gelu_derivative_absolute(x[i]);
    to.add(o.dx, std::move(x), 1, StoredAs::storage);
  }

  void operator()(Attention const& o) const { rounding::attention(to, o); }
  void operator()(AttentionInput const& o) const { rounding::attention_input(to, o); }

  void operator()(Embedding const& o) const {
    if (!o.positions) return;
    Dense table = load_absolute(o.table), positions = load_absolute(o.positions), sums(o.y.dims());
    to.bench.run(Embedding{o.ids, table.view(), positions.view(), sums.view(), o.slice});
    to.add(o.y, std::move(sums), 1, StoredAs::storage);
  }
  void operator()(EmbeddingWeight const& o) const {
    Dense dy = load_absolute(o.dy), sums(o.dtable.dims());
    to.bench.run(EmbeddingWeight{o.ids, dy.view(), sums.view(), Write::overwrite, o.slice});
    to.add(o.dtable, std::move(sums), additions(largest_count(o.ids, o.dtable.shape[0], o.slice)), StoredAs::accumulator);
  }
  void operator()(PositionWeight const& o) const {
    Dense dy = load_absolute(o.dy), sums(o.dpositions.dims());
    to.bench.run(PositionWeight{dy.view(), sums.view(), Write::overwrite});
    to.add(o.dpositions, std::move(sums), additions(o.dy.shape[0]), StoredAs::accumulator);
  }

  void operator()(Dropout const& o) const {
    if (o.p == 0) return;
    Dense kept(o.y.dims()), x = load_absolute(o.x);
    Dropout masked = o;
    masked.x = x.view(), masked.y = kept.view();
    to.bench.run(masked);
    to.add(o.y, std::move(kept), 1, StoredAs::storage);
  }

  void operator()(CrossEntropy const& o) const { rounding::cross_entropy(to, o); }
  void operator()(SoftmaxPart const& o) const { rounding::softmax_part(to, o); }
  void operator()(SlicedCrossEntropy const& o) const { rounding::sliced_cross_entropy(to, o); }
  void operator()(SquaredError const& o) const { rounding::squared_error(to, o); }

  void operator()(Convolution const& o) const { rounding::convolution(to, o); }
  void operator()(ConvolutionInput const& o) const { rounding::convolution_input(to, o); }
  void operator()(ConvolutionWeight const& o) const { rounding::convolution_weight(to, o); }
  void operator()(AveragePool const& o) const { rounding::average_pool(to, o); }
  void operator()(AveragePoolInput const& o) const { rounding::average_pool_input(to, o); }
  void operator()(BatchMoments const& o) const { rounding::batch_moments(to, o); }
  void operator()(MergeMoments const& o) const { rounding::merge_moments(to, o); }
  void operator()(BatchNorm const& o) const { rounding::batch_norm(to, o); }
  void operator()(BatchNormWeight const& o) const { rounding::batch_norm_weight(to, o); }
  void operator()(BatchNormInput const& o) const { rounding::batch_norm_input(to, o); }

  /// Only casts to a narrower type round, and they do it in storing.
  void operator()(Copy const& o) const {
    if (width(o.to.dtype) < width(o.from.dtype)) to.add(o.to, Dense(o.to.dims()), 0, StoredAs::storage);
  }

  void operator()(NormLeaves const& o) const {
    Dense sums(o.leaves.dims());
    to.bench.run(NormLeaves{o.x, sums.view()});
    to.add(o.leaves, std::move(sums), additions(std::min(o.x.elements(), norm_leaf)), StoredAs::accumulator);
  }
  void operator()(TreeTotal const& o) const {
    Dense x = load_absolute(o.x), sum(o.out.dims());
    to.bench.run(TreeTotal{x.view(), sum.view()});
    to.add(o.out, std::move(sum), tree_depth(o.x.elements()), StoredAs::accumulator);
  }

  // Selected or set, not rounded; updates have no useful bound (validation, "Bounds"), and nothing in training reads running statistics.
  void operator()(Relu const&) const {}
  void operator()(ReluInput const&) const {}
  void operator()(Fill const&) const {}
  void operator()(Decide const&) const {}
  void operator()(FlagNonFinite const&) const {}
  void operator()(SgdUpdate const&) const {}
  void operator()(AdamWUpdate const&) const {}
  void operator()(RunningUpdate const&) const {}
  void operator()(InverseDeviation const&) const {}
};

}  // namespace

std::vector<OutputRounding> rounding_of(Op const& op, Backend& backend, Stream& stream) {
  Analysis analysis{Bench(backend, stream), {}};
  std::visit(Analyse{analysis}, op);
  return std::move(analysis.outputs);
}

}  // namespace shardmark
