#include "metrics/statistics.hpp"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <numeric>
#include <vector>

#include "base/error.hpp"

namespace shardmark {
namespace {

std::vector<double> sorted(std::span<double const> samples) {
  std::vector<double> out(samples.begin(), samples.end());
  std::sort(out.begin(), out.end());
  return out;
}

double quantile_of_sorted(std::span<double const> samples, double p) {
  double const at = p * double(samples.size() - 1);
  std::size_t const low = std::size_t(at), high = std::min(low + 1, samples.size() - 1);
  return samples[low] + (at - double(low)) * (samples[high] - samples[low]);
}

/// P(B = k) for B binomial with n trials of 1/2.
double binomial_half(std::size_t n, std::size_t k) {
  double const log_choose = std::lgamma(double(n) + 1) - std::lgamma(double(k) + 1) - std::lgamma(double(n - k) + 1);
  return std::exp(log_choose - double(n) * std::numbers::ln2);
}

std::optional<Interval> median_interval_of_sorted(std::span<double const> samples, double confidence) {
  // The median lies outside [x(j), x(n+1-j)] (ranks from 1) with probability 2 P(B <= j - 1): take the largest j that is rare enough.
  std::size_t const n = samples.size();
  std::size_t j = 0;
  for (double below = 0; j < n / 2; ++j) {
    below += binomial_half(n, j);
    if (2 * below > 1 - confidence) break;
  }
  if (j == 0) return std::nullopt;
  return Interval{samples[j - 1], samples[n - j]};
}

}  // namespace

double mean(std::span<double const> samples) {
  expect(!samples.empty(), "a mean needs samples");
  return std::accumulate(samples.begin(), samples.end(), 0.0) / double(samples.size());
}

double quantile(std::span<double const> samples, double p) {
  expect(!samples.empty() && p >= 0 && p <= 1, "a quantile needs samples and a share");
  return quantile_of_sorted(sorted(samples), p);
}

double median(std::span<double const> samples) { return quantile(samples, 0.5); }

std::optional<Interval> median_interval(std::span<double const> samples, double confidence) {
  return median_interval_of_sorted(sorted(samples), confidence);
}

std::optional<double> lag1_autocorrelation(std::span<double const> samples) {
  if (samples.size() < 3) return std::nullopt;
  double const centre = mean(samples);
  double products = 0, squares = 0;
  for (std::size_t i = 0; i < samples.size(); ++i) {
    double const x = samples[i] - centre;
    squares += x * x;
    if (i + 1 < samples.size()) products += x * (samples[i + 1] - centre);
  }
  if (squares == 0) return std::nullopt;
  return products / squares;
}

std::optional<double> halves_ratio(std::span<double const> samples) {
  std::size_t const half = samples.size() / 2;
  if (half == 0) return std::nullopt;
  return median(samples.first(half)) / median(samples.last(half));
}

PairedRatio paired_ratio(std::span<double const> numerator, std::span<double const> denominator) {
  expect(numerator.size() == denominator.size() && !numerator.empty(), "rounds in pairs");
  std::vector<double> ratios(numerator.size());
  std::transform(numerator.begin(), numerator.end(), denominator.begin(), ratios.begin(), std::divides<>());
  return {median(ratios), median_interval(ratios)};
}

Summary summarise(std::span<double const> samples) {
  expect(!samples.empty(), "a summary needs samples");
  auto const ordered = sorted(samples);
  return {.n = ordered.size(),
          .median = quantile_of_sorted(ordered, 0.5),
          .mean = mean(samples),
          .min = ordered.front(),
          .p95 = quantile_of_sorted(ordered, 0.95),
          .max = ordered.back(),
          .ci95 = median_interval_of_sorted(ordered, 0.95)};
}

}  // namespace shardmark
