#pragma once
// The envelope: what every tensor of step 1 is in fp64, and how far rounding can move it (validation, "Bounds").
//
//   bound_i = 4 sqrt(h_i) u A_i + 4 e_T        u: unit roundoff of the accumulator
//
// A and h come from a run of the serial twin under the Absolute decorator, e_T from eight runs under the Perturbed one: the largest
// deviation over all elements of the tensor. All runs perturb with u0 = 2^-30 and e_T is kept as deviation / u0. One envelope then
// serves fp64 and fp32: a deviation is a sum of first-order terms, each proportional to u, plus terms of order u^2, and u0 is far
// from both ends: its second-order terms are 1e-9 of the first, and fp64's own noise (2^-53) is 2^-23 of what is measured.
//
// bf16 has runs of its own: what is stored, and weights and data that are cast, round by 2^-8, sums by fp32's 2^-24. Its bounds are wide,
// so a weight gradient C is held to the reference R by its best-fit factor too: c = <C,R> / <R,R>, |c - 1| <= 8 rms(c_r - 1) over the
// eight perturbed runs r.

#include "verify/assembly.hpp"
#include "verify/capture.hpp"

namespace shardmark {

inline constexpr double envelope_roundoff = 0x1p-30;
inline constexpr int envelope_runs = 8;

struct TensorEnvelope {
  std::vector<double> reference;
  std::vector<float> spread;      // sqrt(h) A: three digits are enough, and at full size memory isn't
  double deviation = 0;           // e_T / u, of types that store what they sum in
  double bfloat16_deviation = 0;  // e_T / 2^-24
  double bfloat16_factor = 0;     // bound of |c - 1|; 0: not tested (no gradient of a weight, or zero)
  double largest = 0;             // max |reference|
  double largest_spread = 0;
  std::vector<double> selected;  // what ReLU's undecided selections can do to each element in fp32 (selections.hpp); empty: nothing
  double mean_selected = 0;

  double bound(std::int64_t i, DType type) const {
    double const selections = type == DType::f32 && !selected.empty() ? selected[std::size_t(i)] : 0;
    return bound_of(double(spread[std::size_t(i)]), type) + selections;
  }
  /// With the mean of selections: the few elements that they reach don't take the power from the others.
  double largest_bound(DType type) const { return bound_of(largest_spread, type) + (type == DType::f32 ? mean_selected : 0); }

 private:
  double bound_of(double sums, DType type) const {
    return 4 * unit_roundoff(accumulator(type)) * (sums + (type == DType::bf16 ? bfloat16_deviation : deviation));
  }
};
using Envelope = std::vector<TensorEnvelope>;  // by tensor of the catalogue

struct EnvelopeParts {
  Job const& twin;  // serial, fp64
  Catalogue const& catalogue;
  std::function<std::unique_ptr<Backend>()> const& backend;
  std::function<void()> const& beat;
  std::span<DType const> types;  // that will be held to it
  double roundoff = envelope_roundoff;
  double selection_roundoff = unit_roundoff(DType::f32);  // which inputs of ReLU are undecided, where fp32 is among the types
};

/// Collective: every rank makes the reference, the perturbed runs are spread over the ranks.
Envelope make_envelope(EnvelopeParts const& parts, Assembly& ranks);

}  // namespace shardmark
