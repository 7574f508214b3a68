// The shape of an error tells its cause: a mean where a sum belongs is a factor R, a skipped reduction is the rank's own part.

#include <fmt/format.h>

#include <array>
#include <cmath>

#include "verify/finding.hpp"

namespace shardmark {
namespace {

struct Named {
  double factor;
  char const* cause;
};

std::string named_factor(double c, double tolerance, Counts counts) {
  double const r = counts.replicas, m = counts.micros, t = counts.parts;
  std::array<Named, 14> const known = {{{t, "t, the tensor-parallel ranks"},
                                        {1 / t, "1/t: divided by the tensor-parallel ranks"},
                                        {r, "R, the replicas"},
                                        {1 / r, "1/R: divided by the replicas"},
                                        {m, "M, the micro-batches"},
                                        {1 / m, "1/M: divided by the micro-batches"},
                                        {r * m, "R M"},
                                        {1 / (r * m), "1/(R M)"},
                                        {2, "added twice"},
                                        {0.5, "halved"},
                                        {std::sqrt(2.0), "sqrt 2"},
                                        {std::sqrt(0.5), "1/sqrt 2"},
                                        {-1, "the sign"},
                                        {1 / (r * r), "1/R^2: divided by the replicas twice"}}};
  for (Named const& k : known)
    if (k.factor != 1 && std::abs(c / k.factor - 1) <= tolerance) return fmt::format("expected times {:.6g} ({})", k.factor, k.cause);
  return fmt::format("expected times {:.6g}", c);
}

}  // namespace

std::string fingerprint(Finding const& worst, double power, Counts counts, int rank) {
  if (worst.partial != 0) return fmt::format("equals the partial result of rank {} (not reduced)", rank);
  if (worst.not_updated != 0) return "not updated: equals the weight before the update";
  if (worst.cc == 0) return "zero";
  if (worst.failing == 1 && worst.covered > 1) return fmt::format("one element differs ({})", std::int64_t(worst.index));
  if (!(worst.rr > 0) || !(worst.cc > 0)) return "no simple factor";
  // Least squares: C = c R + rest; what |rest| / |C| comes to by cancellation is exact to 1e-8.
  double const c = worst.cr / worst.rr;
  double const rest = std::sqrt(std::max(0.0, 1 - worst.cr * (worst.cr / (worst.cc * worst.rr))));
  // Rounding moves C by about 1/power of its largest element.
  double const tolerance = std::max(1e-7, 4 / std::max(power, 1.0));
  if (rest <= tolerance && std::abs(c - 1) > tolerance) return named_factor(c, tolerance, counts);
  return fmt::format("no simple factor (best fit {:.6g}, the rest is {:.1e} of it)", c, rest);
}

}  // namespace shardmark
