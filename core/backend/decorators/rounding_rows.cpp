// Layer normalisation and losses: one row at a time, to first order.

#include <algorithm>

#include "backend/decorators/rounding_parts.hpp"
#include "backend/op_access.hpp"
#include "backend/reference/loops_sliced_loss.hpp"

namespace shardmark::rounding {
namespace {

struct Moments {
  double mean = 0, mean_absolute = 0, rstd = 0;
  double spread_error = 0;  // mean of |x - mean| (|x| + |mean|): what rounding x - mean moves the variance by, halved
};

Moments moments_of(double const* x, std::int64_t n, double epsilon) {
  Moments m;
  double variance = 0;
  for (std::int64_t j = 0; j < n; ++j) m.mean += x[j] / double(n), m.mean_absolute += std::abs(x[j]) / double(n);
  for (std::int64_t j = 0; j < n; ++j) {
    double const apart = x[j] - m.mean;
    variance += apart * apart / double(n);
    m.spread_error += std::abs(apart) * (std::abs(x[j]) + std::abs(m.mean)) / double(n);
  }
  m.rstd = 1 / std::sqrt(variance + epsilon);
  return m;
}

/// xhat = (x - mean) rstd and the magnitude of what was subtracted: rounding moves xhat by u times that.
struct Normalised {
  double xhat, magnitude;
  Normalised(double x, double mean, double rstd) : xhat((x - mean) * rstd), magnitude((std::abs(x) + std::abs(mean)) * rstd) {}
};

}  // namespace

void layer_norm(Analysis& to, LayerNorm const& o) {
  std::int64_t const rows = rows_of(o.x), n = columns_of(o.x);
  Dense const x = to.bench.load(o.x), gamma = to.bench.load_absolute(o.gamma), beta = to.bench.load_absolute(o.beta);
  Dense y(o.y.dims()), mean(o.mean.dims()), rstd(o.rstd.dims());
  for (std::int64_t r = 0; r < rows; ++r) {
    double const* const row = x.values().data() + r * n;
    Moments const m = moments_of(row, n, o.epsilon);
    for (std::int64_t j = 0; j < n; ++j) y[r * n + j] = (std::abs(row[j]) + m.mean_absolute) * m.rstd * gamma[j] + beta[j];
    mean[r] = m.mean_absolute;
    rstd[r] = m.rstd * (1 + m.rstd * m.rstd * m.spread_error);
  }
  double const additions = double(std::max<std::int64_t>(n - 1, 1));
  to.add(o.y, std::move(y), 1, StoredAs::storage);
  to.add(o.mean, std::move(mean), additions, StoredAs::accumulator);
  to.add(o.rstd, std::move(rstd), additions, StoredAs::accumulator);
}

void layer_norm_input(Analysis& to, LayerNormInput const& o) {
  std::int64_t const rows = rows_of(o.x), n = columns_of(o.x);
  Dense const x = to.bench.load(o.x), gamma = to.bench.load(o.gamma), dy = to.bench.load(o.dy);
  Dense const mean = to.bench.load(o.mean), rstd = to.bench.load(o.rstd);
  Dense dx(o.dx.dims());
  for (std::int64_t r = 0; r < rows; ++r) {
    double mean_g = 0, mean_g_xhat = 0, mean_g_magnitude = 0;  // of absolute values
    for (std::int64_t j = 0; j < n; ++j) {
      Normalised const v(x[r * n + j], mean[r], rstd[r]);
      double const g = std::abs(dy[r * n + j] * gamma[j]);
      mean_g += g / double(n);
      mean_g_xhat += g * std::abs(v.xhat) / double(n);
      mean_g_magnitude += g * v.magnitude / double(n);
    }
    for (std::int64_t j = 0; j < n; ++j) {
      Normalised const v(x[r * n + j], mean[r], rstd[r]);
      double const g = std::abs(dy[r * n + j] * gamma[j]);
      dx[r * n + j] = rstd[r] * (g + mean_g + v.magnitude * mean_g_xhat + std::abs(v.xhat) * mean_g_magnitude);
    }
  }
  to.add(o.dx, std::move(dx), 1, StoredAs::storage);
}

void layer_norm_weight(Analysis& to, LayerNormWeight const& o) {
  std::int64_t const rows = rows_of(o.x), n = columns_of(o.x);
  Dense const x = to.bench.load(o.x), dy = to.bench.load_absolute(o.dy);
  Dense const mean = to.bench.load(o.mean), rstd = to.bench.load(o.rstd);
  Dense dgamma(o.dgamma.dims()), dbeta(o.dbeta.dims());
  for (std::int64_t r = 0; r < rows; ++r)
    for (std::int64_t j = 0; j < n; ++j) {
      dgamma[j] += dy[r * n + j] * Normalised(x[r * n + j], mean[r], rstd[r]).magnitude;
      dbeta[j] += dy[r * n + j];
    }
  to.add(o.dgamma, std::move(dgamma), double(rows), StoredAs::accumulator);
  to.add(o.dbeta, std::move(dbeta), double(std::max<std::int64_t>(rows - 1, 0)), StoredAs::accumulator);
}

void cross_entropy(Analysis& to, CrossEntropy const& o) {
  std::int64_t const rows = rows_of(o.logits), n = columns_of(o.logits);
  Dense const x = to.bench.load(o.logits);
  Dense tally{3}, dlogits(o.logits.dims());
  // The softmax's denominator is a sum of n terms: its relative error moves the loss, and every probability.
  double const sum_error = std::sqrt(double(n));
  for (std::int64_t r = 0; r < rows; ++r) {
    std::int64_t const target = o.target.as<std::int32_t>()[r];
    if (target < 0) continue;
    double const* const row = x.values().data() + r * n;
    double const highest = *std::max_element(row, row + n);
    double sum = 0;
    for (std::int64_t j = 0; j < n; ++j) sum += std::exp(row[j] - highest);
    tally[0] += std::abs(highest + std::log(sum)) + std::abs(highest) + std::abs(row[target]) + sum_error;
    for (std::int64_t j = 0; j < n; ++j) {
      double const p = std::exp(row[j] - highest) / sum;
      double const exponent_error = std::abs(row[j]) + std::abs(highest);
      dlogits[r * n + j] = std::abs(o.scale) * (p * (1 + exponent_error + sum_error) + (j == target ? 1 : 0));
    }
  }
  to.add(o.tally, std::move(tally), 1, StoredAs::exact);
  if (o.dlogits) to.add(o.dlogits, std::move(dlogits), 1, StoredAs::storage);
}

void softmax_part(Analysis& to, SoftmaxPart const& o) {
  std::int64_t const rows = rows_of(o.logits), n = columns_of(o.logits);
  Dense const x = to.bench.load(o.logits);
  Dense part(o.part.dims());
  for (std::int64_t r = 0; r < rows && n > 0; ++r) {
    double const* const row = x.values().data() + r * n;
    double const highest = *std::max_element(row, row + n);
    double& sum = part[r * softmax_part_size];
    for (std::int64_t j = 0; j < n; ++j)
      sum += std::exp(row[j] - highest) * (1 + std::abs(row[j]) + std::abs(highest) + std::sqrt(double(n)));
  }
  // What isn't summed is selected.
  to.add(o.part, std::move(part), 1, StoredAs::exact);
}

void sliced_cross_entropy(Analysis& to, SlicedCrossEntropy const& o) {
  std::int64_t const rows = rows_of(o.logits), n = columns_of(o.logits), slices = o.parts.shape[0];
  Dense const x = to.bench.load(o.logits);
  Dense parts = to.bench.load(o.parts), tally{3}, dlogits(o.logits.dims());
  for (std::int64_t r = 0; r < rows; ++r) {
    if (o.target.as<std::int32_t>()[r] < 0) continue;
    reference::MergedRow const merged = reference::merge_row<double>(parts.view(), r);
    std::int64_t const target = reference::target_column(o.target, r, o.first, n);
    double sum_error = double(slices);  // relative: of the parts' exponents, and of adding them
    for (std::int64_t s = 0; s < slices; ++s) {
      double const* const part = parts.values().data() + (s * rows + r) * softmax_part_size;
      sum_error += part[0] * std::exp(part[1] - merged.highest) / merged.sum * (std::abs(part[1]) + std::abs(merged.highest));
    }
    tally[0] += std::abs(merged.highest + std::log(merged.sum)) + std::abs(merged.highest) + std::abs(merged.wanted) + sum_error;
    for (std::int64_t j = 0; j < n; ++j) {
      double const logit = x[r * n + j], p = std::exp(logit - merged.highest) / merged.sum;
      double const exponent_error = std::abs(logit) + std::abs(merged.highest);
      dlogits[r * n + j] = std::abs(o.scale) * (p * (1 + exponent_error + sum_error) + (j == target ? 1 : 0));
    }
  }
  to.add(o.tally, std::move(tally), 1, StoredAs::exact);
  if (o.dlogits) to.add(o.dlogits, std::move(dlogits), 1, StoredAs::storage);
}

void squared_error(Analysis& to, SquaredError const& o) {
  Dense const y = to.bench.load(o.y), target = to.bench.load(o.target);
  Dense tally{3}, dy(o.y.dims());
  for (std::int64_t i = 0; i < y.elements(); ++i) {
    double const magnitude = std::abs(y[i]) + std::abs(target[i]);
    tally[0] += std::abs(y[i] - target[i]) * magnitude;
    dy[i] = std::abs(o.scale) * magnitude;
  }
  to.add(o.tally, std::move(tally), 1, StoredAs::exact);
  if (o.dy) to.add(o.dy, std::move(dy), 1, StoredAs::storage);
}

}  // namespace shardmark::rounding
