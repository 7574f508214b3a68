#pragma once
// Bit for bit: a deterministic candidate against its serial twin under the same SumOrder (validation, "Rules for bit equality").

#include "verify/candidate.hpp"

namespace shardmark {

struct BitwiseParts {
  std::string part;
  Job const& twin;                                                // in the candidate's type
  std::function<std::unique_ptr<Backend>(DType)> const& backend;  // the candidate's
  DType dtype;
  Catalogue const& catalogue;
  std::function<void()> const& beat;
};

/// Collective. Rank 0 runs the twin for as many steps as the candidate made, the others wait; then every rank compares what it holds:
/// the loss and norm of each step, the last step's gradients, the final weights and optimizer state.
std::vector<Check> compare_bitwise(BitwiseParts const& parts, Candidate& candidate, Assembly& ranks);

}  // namespace shardmark
