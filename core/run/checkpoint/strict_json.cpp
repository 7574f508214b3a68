#include "run/checkpoint/strict_json.hpp"

#include <fmt/format.h>

#include <set>
#include <vector>

#include "data/file.hpp"

namespace shardmark {

using Json = nlohmann::json;

void refuse_content(std::filesystem::path const& path, std::string const& found, std::string const& expected) {
  refuse_file(path, fmt::format("found {}; expected {}", found, expected), "it is damaged or something else: take another copy");
}

std::string shown(Json const& value) {
  constexpr std::size_t longest = 60;
  std::string text = value.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (text.size() > longest) text = text.substr(0, longest) + "...";
  return text;
}

Json parse_object(std::string_view text, int deepest, std::filesystem::path const& path, std::string_view what) {
  using Event = Json::parse_event_t;
  std::vector<std::set<std::string>> names;  // of the objects that are open
  auto const look = [&](int depth, Event event, Json& parsed) {
    bool const opens = event == Event::object_start || event == Event::array_start;
    if (opens && depth > deepest)
      refuse_content(path, fmt::format("{} nested {} levels deep", what, depth), fmt::format("at most {}", deepest));
    if (event == Event::object_start) names.emplace_back();
    if (event == Event::object_end) names.pop_back();
    if (event == Event::key && !names.back().insert(parsed.get<std::string>()).second)
      refuse_content(path, fmt::format("{} twice in {}", shown(parsed), what), "each name once");
    return true;
  };
  Json json;
  try {
    json = Json::parse(text, look);
  } catch (Json::exception const& error) {
    // "[json.exception.parse_error.101] parse error at line 2, column 1: ..."
    std::string_view const why = error.what();
    refuse_content(path, fmt::format("{}", shown(std::string(why.substr(why.find("] ") + 2)))), fmt::format("JSON as {}", what));
  }
  if (!json.is_object()) refuse_content(path, fmt::format("{} as {}", json.type_name(), what), "a JSON object");
  return json;
}

}  // namespace shardmark
