#pragma once
// The ways to train on the same samples that aren't equal to accumulation, each done and measured.

#include <optional>
#include <string>
#include <vector>

#include "strategies/accumulation/both_ways.hpp"

namespace shardmark {

struct Variant {
  std::string what;
  std::optional<Deviation> measured;  // absent: it can't be done here
  std::string why;
  std::string model;  // on which it was measured, where the run's own can't show it
};

/// By what differs: the order of sums, what is computed, or what is scaled. Collective; measured on rank 0.
std::vector<Variant> measure_variants(Workbench& bench, TwoJobs const& jobs, BothWays const& both);

}  // namespace shardmark
