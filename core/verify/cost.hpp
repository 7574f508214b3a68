#pragma once
// What a run cost, held against closed forms: a strategy that computes the right numbers in the wrong way fails here.

#include "schedule/check.hpp"
#include "schedule/traffic_forms.hpp"
#include "verify/candidate.hpp"

namespace shardmark {

/// Collective. @param proof of the candidate's schedule @param traffic what its layers must exchange; absent: not counted
std::vector<Check> check_costs(std::string const& part, Candidate& candidate, Proof const& proof,
                               std::optional<std::vector<TrafficForm>> const& traffic, Assembly& ranks);

}  // namespace shardmark
