#pragma once
// Statistics of random numbers, each as a z: about what a standard normal variable would show if the numbers are what they claim to be.
// Seeds are fixed, so a test gives the same answer each time.

#include <functional>
#include <span>
#include <string>
#include <vector>

namespace shardmark::testing {

/// What a generator got wrong: names of statistics whose |z| is above 4.5 (chance: 7e-6 each).
class Faults {
 public:
  /// A NaN is a fault.
  void check(std::string const& what, double z);
  void found(std::string const& what) { faults_.push_back(what); }
  std::vector<std::string> const& all() const { return faults_; }

 private:
  std::vector<std::string> faults_;
};

double mean_z(std::span<double const> x, double mean, double deviation);
/// @param kurtosis  fourth central moment over the variance squared: 3 for a normal, 1.8 for a uniform variable
double variance_z(std::span<double const> x, double mean, double deviation, double kurtosis);
/// Pearson's test that all cells are equally likely, by the cube root of Wilson and Hilferty (1931).
double equal_cells_z(std::span<std::int64_t const> counts);
/// Kolmogorov and Smirnov: twice sqrt(n) D, whose tail 2 exp(-2 n D^2) is close to a normal's.
double distribution_z(std::vector<double> x, std::function<double(double)> const& cumulative);
double correlation_z(std::span<double const> x, std::span<double const> y);
/// The same between x and itself, `lag` elements on.
double lag_z(std::span<double const> x, std::size_t lag);

}  // namespace shardmark::testing
