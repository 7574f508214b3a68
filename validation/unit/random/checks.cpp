#include "checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <numeric>

namespace shardmark::testing {
namespace {

constexpr double largest_z = 4.5;

double mean_of(std::span<double const> x) { return std::accumulate(x.begin(), x.end(), 0.0) / double(x.size()); }

}  // namespace

void Faults::check(std::string const& what, double z) {
  if (!(std::abs(z) <= largest_z)) found(fmt::format("{} (z = {:.1f})", what, z));
}

double mean_z(std::span<double const> x, double mean, double deviation) {
  return (mean_of(x) - mean) / deviation * std::sqrt(double(x.size()));
}

double variance_z(std::span<double const> x, double mean, double deviation, double kurtosis) {
  double sum = 0;
  for (double v : x) sum += (v - mean) * (v - mean);
  double const n = double(x.size()), variance = deviation * deviation;
  return (sum / n / variance - 1) / std::sqrt((kurtosis - 1) / n);
}

double equal_cells_z(std::span<std::int64_t const> counts) {
  double const expected = double(std::accumulate(counts.begin(), counts.end(), std::int64_t{0})) / double(counts.size());
  double chi_square = 0;
  for (std::int64_t count : counts) chi_square += (double(count) - expected) * (double(count) - expected) / expected;
  double const freedom = double(counts.size() - 1), spread = 2 / (9 * freedom);
  return (std::cbrt(chi_square / freedom) - (1 - spread)) / std::sqrt(spread);
}

double distribution_z(std::vector<double> x, std::function<double(double)> const& cumulative) {
  std::sort(x.begin(), x.end());
  double const n = double(x.size());
  double largest = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    double const expected = cumulative(x[i]);
    largest = std::max({largest, double(i + 1) / n - expected, expected - double(i) / n});
  }
  return 2 * std::sqrt(n) * largest;
}

double correlation_z(std::span<double const> x, std::span<double const> y) {
  double const mean_x = mean_of(x), mean_y = mean_of(y);
  double xx = 0, yy = 0, xy = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    xx += (x[i] - mean_x) * (x[i] - mean_x);
    yy += (y[i] - mean_y) * (y[i] - mean_y);
    xy += (x[i] - mean_x) * (y[i] - mean_y);
  }
  return xy / std::sqrt(xx * yy) * std::sqrt(double(x.size()));
}

double lag_z(std::span<double const> x, std::size_t lag) { return correlation_z(x.first(x.size() - lag), x.subspan(lag)); }

}  // namespace shardmark::testing
