#pragma once
// Operations in a narrow type against the same in fp64: within what the analysis of their rounding allows.

#include <gtest/gtest.h>

#include <algorithm>

#include "backend/decorators/rounding.hpp"
#include "validation/unit/backend/op_cases.hpp"

namespace shardmark::cases {

/// In bf16 the pre-activation of a fused bias + GELU is rounded when it is stored, which no A knows of: |gelu'| <= 1.13 times that
/// reaches the output. Empty for every other output.
inline std::vector<double> stored_before(OpCase const& c, View const& output) {
  auto const* op = std::get_if<Matmul>(&c.op);
  if (op == nullptr || op->epilogue != Epilogue::bias_gelu || output.data != op->c.data) return {};
  std::vector<double> out = numbers_in(op->aux);
  for (double& x : out) x = 1.13 * std::abs(x);
  return out;
}

/// |narrow - exact| of each element is within what the analysis of the exact operation allows.
inline void expect_within_rounding(OpCase const& narrow, OpCase const& exact, std::vector<OutputRounding> const& roundings, double store,
                                   double accumulate) {
  auto const got = narrow.outputs(), wanted = exact.outputs();
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    // What is rounded may be a part: of moments, all but the count.
    auto const [first, last] = extent(wanted[i].first);
    auto const at = std::find_if(roundings.begin(), roundings.end(), [first = first, last = last](OutputRounding const& r) {
      return r.output.data >= first && r.output.data < last;
    });
    std::size_t const exact_ones =
        at == roundings.end() ? 0 : std::size_t(at->output.data - wanted[i].first.data) / width(at->output.dtype);
    double const unit = got[i].first.dtype == DType::bf16 ? store : accumulate;
    std::vector<double> const inside = stored_before(exact, wanted[i].first);
    for (std::size_t e = 0; e < wanted[i].second.size(); ++e) {
      double const y = wanted[i].second[e];
      bool const moves = at != roundings.end() && e >= exact_ones;
      double const moved = moves ? std::sqrt(at->terms) * accumulate * at->absolute[e - exact_ones] : 0;
      double const rounded = std::abs(y) + (inside.empty() ? 0 : inside[e]);
      EXPECT_LE(std::abs(got[i].second[e] - y), 4 * (moved + unit * rounded)) << exact.label << " output " << i << " element " << e;
    }
  }
}

inline bool is_update(OpCase const& c) { return std::holds_alternative<SgdUpdate>(c.op) || std::holds_alternative<AdamWUpdate>(c.op); }

}  // namespace shardmark::cases
