#pragma once
// How much an operation's own rounding can move its outputs (validation, "Bounds").
//
// For every floating output y there are A and h such that an implementation which sums in type T, unit roundoff u, stays within
// about sqrt(h) u A of the exact result, element by element: for a sum, A is the same sum over absolute values and h its number of
// additions (a loop n - 1, a tree its depth; a matmul over K: K, which counts the products' rounding). What is no contraction is
// propagated to first order, and h is that of its longest sum. Sources: Higham 2002, sections 3.1 and 4.2, for the sums; Higham and
// Mary 2019 for sqrt(h).

#include <vector>

#include "backend/backend.hpp"

namespace shardmark {

/// The type that an output is rounded to when it is stored.
enum class StoredAs : std::uint8_t {
  storage,      // the type of activations: bf16 in a bf16 run
  accumulator,  // statistics, losses, gradients of weights
  cast,         // the type that data are cast to before they are used
  exact         // moved or selected, not rounded
};

struct OutputRounding {
  View output;
  std::vector<double> absolute;  // A, in the row-major order of the view's elements
  double terms = 0;              // h
  StoredAs stored = StoredAs::storage;
};

/// Analyses `op` before it runs, since outputs may replace inputs; an accumulated output: this call's contribution alone.
/// Outputs without an entry aren't rounded by arithmetic: integers, Fill, Copy within a type, ReLU, optimizer updates.
/// @param backend computes the contractions on absolute values; its work completes inside run(). The operation's numbers may be of
///        any floating type; for the analysis they count as exact.
std::vector<OutputRounding> rounding_of(Op const& op, Backend& backend, Stream& stream);

}  // namespace shardmark
