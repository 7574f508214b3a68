#include "app/option_help.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "app/option_table.hpp"

namespace shardmark {
namespace {

constexpr std::size_t width = 80;
constexpr std::size_t column = 28;  // where meanings begin

/// Words of `text` on lines from `column` to `width`; the first line is open already and is `used` wide.
std::string wrapped(std::string const& text, std::size_t used) {
  std::string out;
  std::size_t at = 0;
  auto new_line = [&] {
    out += "\n" + std::string(column, ' ');
    used = column;
  };
  if (used + 1 >= column)
    new_line();
  else
    out.append(column - used, ' '), used = column;
  while (at < text.size()) {
    std::size_t const end = std::min(text.find(' ', at), text.size());
    std::size_t const length = end - at;
    if (used > column && used + 1 + length > width) new_line();
    if (used > column) out += ' ', ++used;
    out += text.substr(at, length);
    used += length;
    at = end + 1;
  }
  return out + "\n";
}

std::string line(std::string const& left, std::string const& meaning) {
  std::string const start = "  " + left;
  return start + wrapped(meaning, start.size());
}

}  // namespace

std::string help_text(Usage const& usage, std::vector<std::string> const& names) {
  bool const commands = usage.commands == Usage::Commands::yes;
  std::string text = fmt::format("Usage: {}{} [options]\n", usage.program, commands ? " <plan|verify|bench>" : "");
  if (!usage.summary.empty()) text += "\n" + usage.summary + "\n";
  if (commands) {
    text += "\nCommands\n";
    text += line("plan", "print the schedule, its memory and its traffic; needs no MPI");
    text += line("verify", "prove step by step that the result equals the reference");
    text += line("bench", "train, and report speed, memory and traffic beside predictions");
  }
  std::string group;
  for (OptionEntry const& entry : option_table()) {
    if (std::find(names.begin(), names.end(), entry.name) == names.end()) continue;
    if (entry.group != group) text += "\n" + entry.group + "\n";
    group = entry.group;
    std::string const value = entry.takes == Takes::optional_text ? fmt::format(" [{}]", entry.value_name)
                              : entry.value_name.empty()          ? ""
                                                                  : " " + entry.value_name;
    bool const on_by_default = entry.takes == Takes::nothing && entry.read(Options{}) == OptionValue(true);
    text += line(fmt::format("--{}{}{}", on_by_default ? "no-" : "", entry.name, value), entry.meaning);
  }
  text += "\nGeneral\n";
  text += line("--config FILE", "options from a JSON object; the command line wins");
  text += line("--help, --version", "print and stop");
  text +=
      "\nExit codes: 0 good, 1 a verification failed, 2 the request is wrong,\n3 a rank or the network failed, 4 an expectation missed.\n";
  return text;
}

}  // namespace shardmark
