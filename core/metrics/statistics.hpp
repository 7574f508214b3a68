#pragma once
// Statistics of timings, as Hoefler and Belli (SC 2015) ask for: nonparametric, all samples kept.

#include <cstddef>
#include <optional>
#include <span>

namespace shardmark {

struct Interval {
  double low = 0, high = 0;
  bool holds(double value) const { return low <= value && value <= high; }
};

/// @pre at least one sample, in all functions that return a number.
double mean(std::span<double const> samples);
/// Linear interpolation between order statistics (type 7 of Hyndman and Fan 1996). 0 <= p <= 1.
double quantile(std::span<double const> samples, double p);
double median(std::span<double const> samples);

/// Confidence interval of the median from order statistics (Le Boudec 2010, theorem 2.1): the narrowest symmetric pair of ranks whose
/// coverage, by the binomial distribution, is at least `confidence`. Assumes independent samples. nullopt: there are too few (under 6 for
/// 95 %).
std::optional<Interval> median_interval(std::span<double const> samples, double confidence = 0.95);

/// Correlation of each sample with the next; nullopt with fewer than 3 samples, or when all are equal.
std::optional<double> lag1_autocorrelation(std::span<double const> samples);
/// Median of the first half over median of the second half (the middle one of an odd number in neither); nullopt with fewer than 2.
std::optional<double> halves_ratio(std::span<double const> samples);

/// Two strategies in the same rounds: the ratio within each round, so that what both rounds share cancels.
struct PairedRatio {
  double median = 0;
  std::optional<Interval> ci95;
  /// Not distinguishable: the interval holds 1, or there are too few rounds for one.
  bool may_be_equal() const { return !ci95 || ci95->holds(1); }
};
/// Ratios numerator[i] / denominator[i]. @pre equally many, at least one
PairedRatio paired_ratio(std::span<double const> numerator, std::span<double const> denominator);

struct Summary {
  std::size_t n = 0;
  double median = 0, mean = 0, min = 0, p95 = 0, max = 0;
  std::optional<Interval> ci95;  // of the median
};
Summary summarise(std::span<double const> samples);

}  // namespace shardmark
