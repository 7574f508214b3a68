#pragma once

#include <string>
#include <vector>

#include "app/options.hpp"

namespace shardmark {

/// The text of --help, at most 80 columns wide; `names` are the options to show.
std::string help_text(Usage const& usage, std::vector<std::string> const& names);

}  // namespace shardmark
