#include "app/config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>

#include "app/nearest.hpp"

namespace shardmark {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t longest_config_bytes = 1 << 20;  // of all options together; a device or a data set given by mistake has more

char const* what_is_expected(Takes takes) {
  switch (takes) {
    case Takes::nothing:
      return "true or false";
    case Takes::whole_number:
      return "a whole number";
    case Takes::number:
      return "a number";
    case Takes::text:
    case Takes::optional_text:
      return "text";
  }
  return "?";
}

/// The value as JSON, short enough for a message.
std::string shown(Json const& value) {
  return fmt::format("{} {}", value.type_name(), printable(value.dump(-1, ' ', true, Json::error_handler_t::replace)));
}

OptionValue value_from_json(OptionEntry const& entry, Json const& value, std::string const& origin) {
  switch (entry.takes) {
    case Takes::nothing:
      if (value.is_boolean()) return value.get<bool>();
      break;
    case Takes::whole_number:
      if (value.is_number_unsigned() && value.get<std::uint64_t>() > std::uint64_t(std::numeric_limits<std::int64_t>::max()))
        fail_input({fmt::format("{} {} is too large", origin, value.get<std::uint64_t>()), "", ""});
      if (value.is_number_integer()) return value.get<std::int64_t>();
      break;
    case Takes::number:
      if (value.is_number()) return value.get<double>();
      break;
    case Takes::text:
    case Takes::optional_text:
      if (value.is_string()) return value.get<std::string>();
      break;
  }
  fail_input(
      {fmt::format("{} is wrong", origin), fmt::format("{} is expected, found {}", what_is_expected(entry.takes), shown(value)), ""});
}

Json parse_json(std::string const& text, std::string const& origin) {
  try {
    // Duplicate keys would win silently: refused while they are seen.
    std::vector<std::vector<std::string>> seen;
    return Json::parse(text, [&](int, Json::parse_event_t event, Json& parsed) {
      if (event == Json::parse_event_t::object_start) seen.emplace_back();
      if (event == Json::parse_event_t::object_end) seen.pop_back();
      if (event == Json::parse_event_t::key) {
        auto const key = parsed.get<std::string>();
        auto& keys = seen.back();
        require_input(std::find(keys.begin(), keys.end(), key) == keys.end(),
                      {fmt::format("{} in {} is given twice", printable(key), origin), "", ""});
        keys.push_back(key);
      }
      return true;
    });
  } catch (Json::exception const& error) {
    // "[json.exception.parse_error.101] parse error at line 2, column 1: ..."
    std::string_view const what = error.what();
    fail_input({fmt::format("{} is not JSON", origin), printable(what.substr(what.find("] ") + 2)), ""});
  }
}

GivenOption option_from(std::string const& key, Json const& value, std::string const& file, std::vector<std::string> const& known) {
  std::string const origin = fmt::format("{} in {}", key, file);
  OptionEntry const* entry = find_option(key);
  bool const negated = entry == nullptr && key.starts_with("no-");
  if (negated) entry = find_option(std::string_view(key).substr(3));
  bool const offered = entry != nullptr && std::find(known.begin(), known.end(), entry->name) != known.end();
  if (!offered || (negated && entry->takes != Takes::nothing)) {
    require_input(!is_of_later_version(key), {origin, "not in this version", "leave it out"});
    fail_input({fmt::format("unknown key {} in {}", printable(key), file), "no option has this name", did_you_mean(key, known)});
  }
  if (value.is_null()) return {entry, {}, origin};
  OptionValue converted = value_from_json(*entry, value, origin);
  if (negated) converted = !std::get<bool>(converted);
  return {entry, std::move(converted), origin};
}

Json to_json(OptionValue const& value) {
  return std::visit(
      [](auto const& held) -> Json {
        if constexpr (std::is_same_v<std::decay_t<decltype(held)>, std::monostate>)
          return nullptr;
        else
          return held;
      },
      value);
}

}  // namespace

std::vector<GivenOption> parse_config(std::string const& text, std::string const& origin, std::vector<std::string> const& known) {
  Json const config = parse_json(text, origin);
  require_input(config.is_object(),
                {origin + " is not a JSON object", fmt::format("found {}", config.type_name()), "write {\"batch\": 8, ...}"});
  std::vector<GivenOption> given;
  for (auto const& [key, value] : config.items()) {
    GivenOption option = option_from(key, value, origin, known);
    if (std::holds_alternative<std::monostate>(option.value)) continue;
    for (GivenOption const& other : given)
      require_input(other.entry != option.entry,
                    {fmt::format("{} and {} contradict each other", other.origin, option.origin), "", "leave one out"});
    given.push_back(std::move(option));
  }
  return given;
}

std::vector<GivenOption> read_config(std::string const& file, std::vector<std::string> const& known) {
  require_input(!std::filesystem::is_directory(file), {fmt::format("--config {}", printable(file)), "it is a folder", ""});
  std::ifstream stream(file, std::ios::binary);
  require_input(stream.good(), {fmt::format("--config {} can't be read", printable(file)), std::strerror(errno), ""});
  std::string text(longest_config_bytes + 1, '\0');
  stream.read(text.data(), std::streamsize(text.size()));
  text.resize(std::size_t(stream.gcount()));
  require_input(text.size() <= longest_config_bytes,
                {fmt::format("--config {} is too long", printable(file)), fmt::format("it has more than {} bytes", longest_config_bytes),
                 "is it the right file?"});
  return parse_config(text, file, known);
}

std::string describe_json(Options const& options) {
  Json description = Json::object();
  for (OptionEntry const& entry : option_table()) {
    if (entry.audience == Audience::some && !options.offers(entry.name)) continue;
    bool const applies = (entry.commands & in(options.command)) != 0;
    description[entry.name] = applies ? to_json(entry.read(options)) : Json();
  }
  for (char const* alias : {"preset", "accumulate"}) description.erase(alias);
  return description.dump(2, ' ', true, Json::error_handler_t::replace);
}

}  // namespace shardmark
