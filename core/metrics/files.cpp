#include "metrics/files.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <iterator>

namespace shardmark {

std::string_view trimmed(std::string_view text) {
  auto const first = text.find_first_not_of(" \t\n");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\n") - first + 1);
}

Measured<std::string> read_file(std::string const& path) {
  errno = 0;
  std::ifstream file(path);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  if (!file || file.bad()) return Measured<std::string>::missing(fmt::format("{} is not readable ({})", path, std::strerror(errno)));
  if (text.ends_with('\n')) text.pop_back();
  return text;
}

Measured<std::string> field_of(Measured<std::string> const& text, std::string_view key, std::string const& path) {
  if (!text) return text;
  for (std::string_view rest = *text; !rest.empty();) {
    std::string_view const line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    auto const colon = line.find(':');
    if (colon != std::string_view::npos && trimmed(line.substr(0, colon)) == key) return std::string(trimmed(line.substr(colon + 1)));
  }
  return Measured<std::string>::missing(fmt::format("{} has no line {}", path, key));
}

}  // namespace shardmark
