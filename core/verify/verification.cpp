#include "verify/verification.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace shardmark {

std::string_view name(CheckKind kind) {
  switch (kind) {
    case CheckKind::bitwise:
      return "bitwise";
    case CheckKind::bounded:
      return "bounded";
    case CheckKind::count:
      return "count";
    case CheckKind::null_gradient:
      return "null-gradient";
    case CheckKind::factor:
      return "factor";
  }
  return "";
}

std::string_view name(Verdict verdict) {
  switch (verdict) {
    case Verdict::verified:
      return "VERIFIED";
    case Verdict::failed:
      return "FAILED";
    case Verdict::unverified:
      return "UNVERIFIED";
  }
  return "";
}

Verdict worse(Verdict a, Verdict b) {
  if (a == Verdict::failed || b == Verdict::failed) return Verdict::failed;
  return a == Verdict::unverified ? a : b;
}

int Verification::count(CheckKind kind) const {
  return int(std::count_if(checks.begin(), checks.end(), [&](Check const& c) { return c.kind == kind; }));
}
int Verification::count(Verdict of_checks) const {
  return int(std::count_if(checks.begin(), checks.end(), [&](Check const& c) { return c.verdict == of_checks; }));
}

void Verification::add(std::vector<Check> more) {
  for (Check& check : more) {
    verdict = worse(verdict, check.verdict);
    if (first_divergence.empty() && check.verdict == Verdict::failed) {
      first_divergence = fmt::format("{}: {} ({})", check.module, check.tensor, check.part);
      fingerprint = check.note;
    }
    checks.push_back(std::move(check));
  }
}

double Verification::worst_ratio() const {
  double worst = 0;
  for (Check const& c : checks)
    if (c.kind == CheckKind::bounded || c.kind == CheckKind::null_gradient) worst = std::max(worst, c.ratio);
  return worst;
}

}  // namespace shardmark
