#pragma once
// Reading the small text files of /proc and /sys; private to this folder.

#include <string>
#include <string_view>

#include "metrics/measured.hpp"

namespace shardmark {

/// The whole file, without the line end that closes it.
Measured<std::string> read_file(std::string const& path);
/// What follows `key` (the first field of a line, up to the colon) on its line, without white space around it.
Measured<std::string> field_of(Measured<std::string> const& text, std::string_view key, std::string const& path);
std::string_view trimmed(std::string_view text);

}  // namespace shardmark
