// Convolutions, pooling and batch normalisation.

#include <algorithm>

#include "backend/decorators/rounding_parts.hpp"
#include "backend/op_access.hpp"
#include "backend/reference/loops_batch_norm.hpp"

namespace shardmark::rounding {
namespace {

/// xhat = (x - mean) rstd and the magnitude of what was subtracted, as in layer normalisation but by channel.
struct Channel {
  double mean, rstd;
  double xhat(double x) const { return (x - mean) * rstd; }
  double magnitude(double x) const { return (std::abs(x) + std::abs(mean)) * rstd; }
};

double additions(std::int64_t terms) { return double(std::max<std::int64_t>(terms - 1, 1)); }

/// All but the count, which is exact.
void add_moments(Analysis& to, View const& moments, Dense const& absolute, double terms) {
  Dense rest{absolute.elements() - 1};
  std::copy(absolute.values().begin() + 1, absolute.values().end(), rest.values().begin());
  to.add(slice(moments, 0, 1, moments.shape[0]), std::move(rest), terms, StoredAs::accumulator);
}

}  // namespace

void convolution(Analysis& to, Convolution const& o) {
  Dense x = to.bench.load_absolute(o.x), w = to.bench.load_absolute(o.w), sums(o.y.dims());
  to.bench.run(Convolution{x.view(), w.view(), sums.view(), o.window});
  to.add(o.y, std::move(sums), double(o.window.elements(o.x.shape[3])), StoredAs::storage);
}

void convolution_input(Analysis& to, ConvolutionInput const& o) {
  Dense dy = to.bench.load_absolute(o.dy), w = to.bench.load_absolute(o.w), sums(o.dx.dims());
  to.bench.run(ConvolutionInput{dy.view(), w.view(), sums.view(), o.window});
  to.add(o.dx, std::move(sums), double(o.window.elements(o.dy.shape[3])), StoredAs::storage);
}

void convolution_weight(Analysis& to, ConvolutionWeight const& o) {
  Dense dy = to.bench.load_absolute(o.dy), x = to.bench.load_absolute(o.x), sums(o.dw.dims());
  to.bench.run(ConvolutionWeight{dy.view(), x.view(), sums.view(), o.window, Write::overwrite});
  to.add(o.dw, std::move(sums), double(rows_of(o.dy)), StoredAs::accumulator);
}

void average_pool(Analysis& to, AveragePool const& o) {
  Dense x = to.bench.load_absolute(o.x), means(o.y.dims());
  to.bench.run(AveragePool{x.view(), means.view(), o.height, o.width});
  to.add(o.y, std::move(means), double(o.height * o.width), StoredAs::storage);
}

void average_pool_input(Analysis& to, AveragePoolInput const& o) {
  Dense dy = to.bench.load_absolute(o.dy), dx(o.dx.dims());
  to.bench.run(AveragePoolInput{dy.view(), dx.view(), o.height, o.width});
  to.add(o.dx, std::move(dx), 1, StoredAs::storage);
}

/// Rounding x - mean moves M2 by 2 sum |x - mean| (|x| + |mean|).
void batch_moments(Analysis& to, BatchMoments const& o) {
  std::int64_t const rows = rows_of(o.x), channels = columns_of(o.x);
  Dense const x = to.bench.load(o.x);
  Dense packed(o.moments.dims());
  reference::Moments const a(packed.view());
  for (std::int64_t c = 0; c < channels; ++c) {
    double mean = 0;
    for (std::int64_t t = 0; t < rows; ++t)
      mean += x[t * channels + c] / double(rows), a.mean(c) += std::abs(x[t * channels + c]) / double(rows);
    for (std::int64_t t = 0; t < rows; ++t) {
      double const value = x[t * channels + c], apart = std::abs(value - mean);
      a.squares(c) += apart * (apart + 2 * (std::abs(value) + a.mean(c)));
    }
  }
  add_moments(to, o.moments, packed, additions(rows));
}

void merge_moments(Analysis& to, MergeMoments const& o) {
  std::int64_t const channels = o.mean.elements(), count = o.pieces.shape[0];
  Dense pieces = to.bench.load(o.pieces), merged(o.merged.dims()), mean(o.mean.dims()), rstd(o.rstd.dims());
  Dense exact(o.merged.dims()), exact_mean(o.mean.dims()), exact_rstd(o.rstd.dims());
  to.bench.run(MergeMoments{pieces.view(), exact.view(), exact_mean.view(), exact_rstd.view(), o.epsilon});
  reference::Moments const all(exact.view()), a(merged.view());
  double const n = std::max(all.count(), 1.0);
  for (std::int64_t c = 0; c < channels; ++c) {
    for (std::int64_t r = 0; r < count; ++r) {
      reference::Moments const piece(pieces.view(), r);
      double const apart = std::abs(piece.mean(c) - all.mean(c)), size = std::abs(piece.mean(c)) + std::abs(all.mean(c));
      a.mean(c) += piece.count() * std::abs(piece.mean(c)) / n;
      a.squares(c) += piece.squares(c) + piece.count() * apart * (apart + 2 * size);
    }
    mean[c] = a.mean(c);
    rstd[c] = exact_rstd[c] * (2 + exact_rstd[c] * exact_rstd[c] * a.squares(c) / n);
  }
  // A piece adds its share in four steps.
  add_moments(to, o.merged, merged, 4 * additions(count));
  to.add(o.mean, std::move(mean), 4 * additions(count), StoredAs::accumulator);
  to.add(o.rstd, std::move(rstd), 4 * additions(count), StoredAs::accumulator);
}

void batch_norm(Analysis& to, BatchNorm const& o) {
  std::int64_t const rows = rows_of(o.x), channels = columns_of(o.x);
  Dense const x = to.bench.load(o.x), mean = to.bench.load(o.mean), rstd = to.bench.load(o.rstd);
  Dense const gamma = to.bench.load_absolute(o.gamma), beta = to.bench.load_absolute(o.beta);
  Dense y(o.y.dims());
  for (std::int64_t t = 0; t < rows; ++t)
    for (std::int64_t c = 0; c < channels; ++c)
      y[t * channels + c] = gamma[c] * Channel{mean[c], rstd[c]}.magnitude(x[t * channels + c]) + beta[c];
  to.add(o.y, std::move(y), 1, StoredAs::storage);
}

void batch_norm_weight(Analysis& to, BatchNormWeight const& o) {
  std::int64_t const rows = rows_of(o.x), channels = columns_of(o.x);
  Dense const x = to.bench.load(o.x), dy = to.bench.load_absolute(o.dy), mean = to.bench.load(o.mean), rstd = to.bench.load(o.rstd);
  Dense dgamma(o.dgamma.dims()), dbeta(o.dbeta.dims());
  for (std::int64_t t = 0; t < rows; ++t)
    for (std::int64_t c = 0; c < channels; ++c) {
      dgamma[c] += dy[t * channels + c] * Channel{mean[c], rstd[c]}.magnitude(x[t * channels + c]);
      dbeta[c] += dy[t * channels + c];
    }
  to.add(o.dgamma, std::move(dgamma), double(rows), StoredAs::accumulator);
  to.add(o.dbeta, std::move(dbeta), double(std::max<std::int64_t>(rows - 1, 0)), StoredAs::accumulator);
}

void batch_norm_input(Analysis& to, BatchNormInput const& o) {
  std::int64_t const rows = rows_of(o.x), channels = columns_of(o.x);
  Dense const x = to.bench.load(o.x), dy = to.bench.load_absolute(o.dy), gamma = to.bench.load_absolute(o.gamma);
  Dense const mean = to.bench.load(o.mean), rstd = to.bench.load(o.rstd);
  Dense const dgamma = to.bench.load_absolute(o.dgamma), dbeta = to.bench.load_absolute(o.dbeta);
  double const n = std::max(o.moments.as<double>()[0], 1.0);
  Dense dx(o.dx.dims());
  for (std::int64_t t = 0; t < rows; ++t)
    for (std::int64_t c = 0; c < channels; ++c) {
      Channel const at{mean[c], rstd[c]};
      double const value = x[t * channels + c];
      dx[t * channels + c] =
          gamma[c] * rstd[c] * (dy[t * channels + c] + (dbeta[c] + (std::abs(at.xhat(value)) + at.magnitude(value)) * dgamma[c]) / n);
    }
  to.add(o.dx, std::move(dx), 2, StoredAs::storage);
}

}  // namespace shardmark::rounding
