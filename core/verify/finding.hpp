#pragma once
// What one rank saw of one tensor, and how the ranks' views become one check.

#include "verify/assembly.hpp"
#include "verify/catalogue.hpp"

namespace shardmark {

/// Sums over the elements that this rank compared: candidate C, reference R.
struct Finding {
  double error = 0;               // largest |C - R|; NaN when C isn't finite somewhere
  double squares = 0;             // sum of (C - R)^2
  double ratio = 0;               // largest error / bound; infinite when !(error <= bound) has no finite ratio
  double bound = 0;               // at that element
  double index = -1;              // that element
  double covered = 0;             // elements compared
  double failing = 0;             // of them, with a ratio above 1
  double misfit = 0;              // pieces that had another size than the reference's
  double cc = 0, cr = 0, rr = 0;  // <C,C>, <C,R>, <R,R>
  double partial = 0;             // 1: equals this rank's own sum before the reduction, bit for bit
  double not_updated = 0;         // 1: equals the weight before the update, bit for bit

  void compare(double candidate, double reference, double limit, std::int64_t at);
};
inline constexpr std::size_t finding_fields = sizeof(Finding) / sizeof(double);

/// What the fingerprint may call a factor by its cause.
struct Counts {
  int replicas = 1, micros = 1, parts = 1;
};

/// Findings of one part of the proof.
struct Comparison {
  std::string part;
  DType type = DType::f64;
  Catalogue const& catalogue;
  std::vector<Finding> findings;               // this rank's, by tensor
  std::vector<double> largest, largest_bound;  // of the reference; by tensor
  std::vector<double> factor_bound;            // by tensor; 0: no factor test
  Counts counts;
};

/// Collective: one check a tensor, then the factor tests; the same on all ranks.
std::vector<Check> conclude(Comparison const& comparison, Assembly& ranks);

/// What an error looks like: a factor with its cause, a partial result, nothing, or no simple factor.
std::string fingerprint(Finding const& worst, double power, Counts counts, int rank);

}  // namespace shardmark
