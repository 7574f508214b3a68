#pragma once
// What a proof found: one check a tensor or count, a verdict, the first module that diverges, and what its error looks like.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/types.hpp"

namespace shardmark {

/// bitwise: equal bits; bounded: the error stays within what rounding explains; count: a number equals its closed form;
/// null_gradient: bounded, but zero by identity (a key's bias), so nothing can be learned from its size; factor: a gradient's best-fit
/// factor to the reference stays as near 1 as rounding explains (bf16).
enum class CheckKind : std::uint8_t { bitwise, bounded, count, null_gradient, factor };
/// unverified: nothing failed, but the check could not have failed.
enum class Verdict : std::uint8_t { verified, failed, unverified };
std::string_view name(CheckKind kind);
std::string_view name(Verdict verdict);  // in capitals, as printed
/// failed if any is, else unverified if any is.
Verdict worse(Verdict a, Verdict b);

/// NaN: there is no such number for this kind of check (or the candidate's value isn't finite: `note` says so).
struct Check {
  std::string part = {};    // "fp64 gate", "fp32", "fp32 bitwise", "fp32 cost"
  std::string tensor = {};  // "gradient of h.0.attn.q.weight"
  std::string module = {};  // block that makes it
  CheckKind kind = CheckKind::bounded;
  double error = 0;      // largest |candidate - reference|; bitwise: elements that differ; count: |counted - expected|; factor: |c - 1|
  double frobenius = 0;  // root of the sum of squared errors
  double bound = 0;      // at the worst element
  double ratio = 0;      // largest error / bound
  double power = 0;      // max |reference| / largest bound: below 10 the check could not have failed
  std::int64_t elements = 0;
  std::int64_t index = -1;  // worst (bitwise: first differing) element, in the full tensor
  int rank = -1;            // of the world, that has it
  int order = 0;            // forward, then backward, then the update
  Verdict verdict = Verdict::verified;
  std::string note = {};
};

struct Verification {
  Verdict verdict = Verdict::verified;
  std::string strategy;
  DType dtype = DType::f32;
  std::int64_t steps = 0;  // of the bitwise part
  int ranks = 1;
  std::string candidate_backend, reference_backend;
  std::vector<Check> checks;
  std::string first_divergence;  // module and tensor; empty when nothing failed
  std::string fingerprint;       // of its error
  double seconds = 0;

  int count(CheckKind kind) const;
  int count(Verdict of_checks) const;
  /// More checks, with what they mean for the verdict.
  void add(std::vector<Check> more);
  /// Largest ratio among bounded and null-gradient checks.
  double worst_ratio() const;
};

/// Ratios above this are shown as drift: allowed, but more than clean runs show.
inline constexpr double drift_ratio = 0.3;
/// A bounded check of less power could not have failed.
inline constexpr double least_power = 10;

enum class Rows : std::uint8_t { worst, all };
/// A table of at most 100 columns: failing checks, and the worst ten of the others (or all).
std::string table(Verification const& result, Rows rows = Rows::worst);
/// `verify --json`: one object; `environment` are pairs of name and value. Numbers that aren't finite are null.
std::string to_json(Verification const& result, std::vector<std::pair<std::string, std::string>> const& environment);

}  // namespace shardmark
