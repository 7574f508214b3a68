#include "verify/finding.hpp"

#include <fmt/format.h>

#include <cmath>
#include <cstring>
#include <limits>

namespace shardmark {

void Finding::compare(double candidate, double reference, double limit, std::int64_t at) {
  double const e = std::abs(candidate - reference);
  if (!(e <= error)) error = std::isnan(error) ? error : e;
  squares += e * e;
  cc += candidate * candidate;
  cr += candidate * reference;
  rr += reference * reference;
  covered += 1;
  // Not "e > limit": a NaN must fail.
  double r = e <= limit ? (limit > 0 ? e / limit : 0.0) : e / limit;
  if (std::isnan(r)) r = std::numeric_limits<double>::infinity();
  if (r > 1) failing += 1;
  if (index >= 0 && r <= ratio) return;
  ratio = r;
  bound = limit;
  index = double(at);
}

namespace {

using Fields = std::array<double, finding_fields>;

Finding finding_at(std::vector<double> const& all, std::size_t at) {
  Finding out;
  std::memcpy(static_cast<void*>(&out), &all[at * finding_fields], sizeof(Finding));
  return out;
}

/// The whole tensor, each element equally often: an element that nobody compared can't have been right.
bool complete(double covered, std::int64_t elements) {
  if (elements == 0) return covered == 0;
  return covered > 0 && std::fmod(covered, double(elements)) == 0;
}

/// In bf16 bounds are wide by nature: what they can't see the fp64 gate does, so power is asked of the others alone.
void judge(Check& check, DType type, double covered, double misfits) {
  if (misfits > 0 || !complete(covered, check.elements)) {
    check.verdict = Verdict::failed;
    check.note = misfits > 0 ? "another shape than the reference" : "not all of it was made";
  } else if (!(check.ratio <= 1)) {
    check.verdict = Verdict::failed;
    if (!std::isfinite(check.error)) check.note = "not finite";
  } else if (type != DType::bf16 && check.kind == CheckKind::bounded && !(check.power >= least_power)) {
    check.verdict = Verdict::unverified;
    check.note = check.elements == 0 ? "no elements" : "could not have failed";
  }
}

/// The best-fit factor of a gradient on the rank where it is furthest from 1.
Check factor_check(Comparison const& comparison, Check const& bounded, std::size_t tensor, std::vector<double> const& all, int ranks) {
  std::size_t const tensors = comparison.findings.size();
  Check check{.part = comparison.part, .tensor = bounded.tensor, .module = bounded.module, .kind = CheckKind::factor};
  check.frobenius = check.power = std::numeric_limits<double>::quiet_NaN();
  check.bound = comparison.factor_bound[tensor];
  check.elements = bounded.elements;
  check.order = bounded.order;
  double factor = 1;
  for (int r = 0; r < ranks; ++r) {
    Finding const f = finding_at(all, std::size_t(r) * tensors + tensor);
    // A slice of a token table whose ids don't occur has no gradient to fit; the bounds hold it to 0.
    if (f.covered == 0 || f.rr == 0 || std::isnan(check.error) || std::abs(f.cr / f.rr - 1) <= check.error) continue;
    factor = f.cr / f.rr;
    check.error = std::abs(factor - 1);
    check.rank = r;
  }
  check.ratio = check.error / check.bound;
  if (check.ratio <= 1) return check;
  check.verdict = Verdict::failed;
  check.note = fmt::format("expected times {:.6g}", factor);
  return check;
}

}  // namespace

std::vector<Check> conclude(Comparison const& comparison, Assembly& ranks) {
  std::size_t const tensors = comparison.findings.size();
  std::vector<double> mine(tensors * finding_fields);
  std::memcpy(mine.data(), comparison.findings.data(), mine.size() * sizeof(double));
  std::vector<double> const all = ranks.gather(mine);
  // The own-gradient rule knows its reference on the ranks that hold the weight alone.
  std::vector<double> largest = comparison.largest, limits = comparison.largest_bound;
  ranks.maximum(largest);
  ranks.maximum(limits);

  std::vector<Check> out;
  for (std::size_t t = 0; t < tensors; ++t) {
    TensorInfo const& info = comparison.catalogue[int(t)];
    Finding worst;
    double covered = 0, misfits = 0, squares = 0, most = 0;
    int worst_rank = 0;
    for (int r = 0; r < ranks.ranks(); ++r) {
      Finding const f = finding_at(all, std::size_t(r) * tensors + t);
      covered += f.covered;
      misfits += f.misfit;
      squares = std::max(squares, f.squares);
      if (!(f.error <= most)) most = std::isnan(most) ? most : f.error;
      if (worst.index >= 0 && !(f.ratio > worst.ratio)) continue;
      if (f.index < 0) continue;
      worst = f;
      worst_rank = r;
    }
    double const limit = limits[t];
    Check check{.part = comparison.part, .tensor = info.name, .module = info.module};
    check.kind = info.null_gradient ? CheckKind::null_gradient : CheckKind::bounded;
    check.error = most;
    check.frobenius = std::sqrt(squares);
    check.bound = worst.bound;
    check.ratio = worst.ratio;
    check.power = limit > 0 ? largest[t] / limit : 0;
    check.elements = info.elements;
    check.index = std::int64_t(worst.index);
    check.rank = worst.index >= 0 ? worst_rank : -1;
    check.order = info.order;
    judge(check, comparison.type, covered, misfits);
    if (check.verdict == Verdict::failed && check.note.empty()) check.note = fingerprint(worst, check.power, comparison.counts, worst_rank);
    out.push_back(std::move(check));
  }
  for (std::size_t t = 0; t < tensors; ++t)
    if (comparison.factor_bound[t] > 0) out.push_back(factor_check(comparison, out[t], t, all, ranks.ranks()));
  return out;
}

}  // namespace shardmark
