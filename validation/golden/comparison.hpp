#pragma once
// Holds a run against PyTorch's.
//
// Both compute in fp64 from equal weights and equal batches, in different orders. The tolerances, with t = 1e-12:
//
// - Losses, norms: t of the value. Gradients, and weights under SGD: t of the tensor's largest magnitude. These sums have tens to
//   hundreds of terms, and an update is linear in the gradient; 1e-12 is 9,000 roundings (README.md has the largest error that occurs).
// - Running statistics of batch normalisation: t of the tensor's largest magnitude; they are means of what the weights make.
// - Gradients that are zero by identity (the bias of keys: softmax ignores a shift) consist of rounding alone. They are held to t of the
//   case's largest gradient.
// - Weights under AdamW: an update moves a weight by rate * m / (s + epsilon). m is a weighted mean (weights a_i) of the clipped gradients
//   g_i so far, s a weighted root mean square (weights b_i). If each g_i is off by at most d, so are m and, by Minkowski's inequality, s.
//   The quotient then is off by at most d / epsilon * (1 + |m| / s). By Cauchy-Schwarz |m| / s <= sqrt(sum a_i^2 / b_i), which for beta
//   0.9 and 0.999 is below 1.02 in the first five updates. Gradients and the norm that clips them each agree to t, and clipping keeps
//   magnitudes below clip_norm: d <= 2 t clip_norm. In n updates that comes to n * 2.02 * rate / epsilon * 2 t clip_norm, and the
//   arithmetic of each update adds 16 u (|w| + rate), as in verify's own-gradient rule. With PyTorch's epsilon of 1e-8 the first term
//   would be useless: that is why the cases have 1e-2.

#include "validation/golden/trained.hpp"

namespace shardmark::golden {

struct Comparison {
  int tensors = 0;          // compared
  double worst = 0;         // largest error, as a share of its tolerance
  std::string worst_where;  // "sgd.gradient.1/wte.weight"
  std::vector<std::string> differences;
};
Comparison compare(Case const& c, Rule rule, Golden const& golden, Trained const& trained);

}  // namespace shardmark::golden
