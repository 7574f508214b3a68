#pragma once
// --config FILE.json: an object whose keys are options without dashes.

#include <string>
#include <vector>

#include "app/option_rules.hpp"

namespace shardmark {

/// Options of `file`, in its order; null means absent. `known` are the options that this program offers. @throws BadRequest
std::vector<GivenOption> read_config(std::string const& file, std::vector<std::string> const& known);

/// The same for text that was read already. `origin` names it in messages.
std::vector<GivenOption> parse_config(std::string const& text, std::string const& origin, std::vector<std::string> const& known);

}  // namespace shardmark
