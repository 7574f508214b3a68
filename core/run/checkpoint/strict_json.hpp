#pragma once
// JSON from files that may be damaged or hostile; private to this folder.

#include <filesystem>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

namespace shardmark {

/// Ends in BadRequest: can't read PATH (found FOUND; expected EXPECTED); take another copy.
[[noreturn]] void refuse_content(std::filesystem::path const& path, std::string const& found, std::string const& expected);

/// The object that `text`, a part of `path` called `what`, holds. Nested at most `deepest` levels below it, no name twice in an object.
/// @throws BadRequest
nlohmann::json parse_object(std::string_view text, int deepest, std::filesystem::path const& path, std::string_view what);

/// A value or name for a message: ASCII, and no longer than a line.
std::string shown(nlohmann::json const& value);

}  // namespace shardmark
