#pragma once
// From what was given to a whole request: defaults that depend on the command and the model, and what can't work together.

#include <string>
#include <vector>

#include "app/option_table.hpp"

namespace shardmark {

/// One option as the user gave it.
struct GivenOption {
  OptionEntry const* entry;
  OptionValue value;
  std::string origin;  // "--batch", or "batch in FILE"
};

/// @param given at most one of each option, in any order.
/// @throws BadRequest
Options complete(Usage const& usage, Command command, std::vector<GivenOption> given);

/// "--NAME", as it is written on the command line.
std::string dashed(std::string_view name);

}  // namespace shardmark
