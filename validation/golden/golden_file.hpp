#pragma once
// What PyTorch came to: the files that make_golden.py wrote.

#include <map>
#include <string>
#include <vector>

#include "validation/golden/cases.hpp"

namespace shardmark::golden {

/// A parameter's gradient or weight after an update, flat.
using Values = std::vector<double>;
/// By "sgd.gradient.1/h.0.attn.q.weight"; quantities are gradient, weight and buffer.
using Tensors = std::map<std::string, Values>;
std::string key(Rule rule, std::string_view quantity, std::int64_t update, std::string_view parameter);

/// Of each update.
struct Scalars {
  Values loss, norm, counted;
};

struct Golden {
  std::string inputs_sha256;                                // of the export that PyTorch read
  std::map<std::string, std::vector<std::int64_t>> shapes;  // by parameter
  std::map<Rule, Scalars> scalars;
  Tensors tensors;
};
/// Fails the test, and returns what it has, when the files don't fit each other.
Golden read_golden(std::string const& name);

}  // namespace shardmark::golden
