#include "app/options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "app/choices.hpp"
#include "app/config.hpp"
#include "app/nearest.hpp"
#include "app/option_help.hpp"
#include "app/option_rules.hpp"
#include "app/version.hpp"

namespace shardmark {
namespace {

/// The options that `usage` offers.
std::vector<std::string> offered_names(Usage const& usage) {
  std::vector<std::string> names;
  auto const in = [](std::vector<std::string> const& list, std::string const& name) {
    return std::find(list.begin(), list.end(), name) != list.end();
  };
  for (OptionEntry const& entry : option_table())
    if (!in(usage.left_out, entry.name) && (entry.audience == Audience::all || in(usage.extra, entry.name))) names.push_back(entry.name);
  return names;
}

/// The words of one command line. CLI11 cuts it up; what the words mean is the table's matter.
class CommandLine {
 public:
  CommandLine(Usage const& usage, std::vector<std::string> const& names) : usage_(usage), names_(names) {
    app_.set_help_flag("");
    app_.allow_extras();
    help_ = app_.add_flag("--help,-h");
    version_ = app_.add_flag("--version");
    config_ = one_value(app_.add_option("--config"));
    if (usage.commands == Usage::Commands::yes) command_ = one_value(app_.add_option("command"));
    for (std::string const& name : names) add(*find_option(name));
  }

  void parse(int argc, char const* const* argv) {
    try {
      app_.parse(argc, argv);
    } catch (CLI::ArgumentMismatch const& error) {
      std::string const what = error.what();  // "--name: 1 required TYPE missing"
      fail_input({fmt::format("{} needs a value", what.substr(0, what.find(':'))), "", fmt::format("see {} --help", usage_.program)});
    } catch (CLI::ParseError const& error) {
      fail_input({printable(error.what()), "the command line can't be read", fmt::format("see {} --help", usage_.program)});
    }
  }

  bool wants_help() const { return help_->count() > 0; }
  bool wants_version() const { return version_->count() > 0; }

  void refuse_unknown() const {
    for (std::string const& word : app_.remaining()) {
      if (!word.starts_with("-")) continue;
      std::string const name = word.substr(std::min(word.find_first_not_of('-'), word.size()),
                                           word.find('=') - std::min(word.find_first_not_of('-'), word.size()));
      require_input(!is_of_later_version(name), {dashed(name), "not in this version", "leave it out"});
      require_input(find_option(name) == nullptr, {dashed(name), fmt::format("means nothing in {}", usage_.program), "leave it out"});
      std::string const close = nearest(name, names_);
      fail_input({fmt::format("unknown option {}", printable(word)), "no option has this name",
                  close.empty() ? fmt::format("see {} --help", usage_.program) : fmt::format("did you mean {}?", dashed(close))});
    }
    for (std::string const& word : app_.remaining())
      fail_input({fmt::format("unexpected word {}", printable(word)), "options begin with --", ""});
  }

  Command command() const {
    if (command_ == nullptr) return usage_.command;
    require_input(command_->count() == 1,
                  {"no command", "the first word is plan, verify or bench", fmt::format("see {} --help", usage_.program)});
    return choose<Command>(command_->results().front(), "command");
  }

  std::string config() const {
    require_input(config_->count() <= 1, {"--config is given twice", "", "leave one out"});
    if (config_->count() == 0) return "";
    require_input(!config_->results().front().empty(), {"--config is empty", "", "leave it out, or give it a file"});
    return config_->results().front();
  }

  std::vector<GivenOption> given() const {
    std::vector<GivenOption> result;
    for (Words const& words : words_) {
      std::string const origin = dashed((words.negated ? "no-" : "") + words.entry->name);
      std::size_t const times = words.option->count();
      require_input(times <= 1, {origin + " is given twice", "", "leave one out"});
      if (times == 0) continue;
      for (GivenOption const& other : result)
        require_input(other.entry != words.entry,
                      {fmt::format("{} and {} contradict each other", other.origin, origin), "", "leave one out"});
      result.push_back({words.entry, value_of(words, origin), origin});
    }
    return result;
  }

 private:
  struct Words {
    OptionEntry const* entry;
    CLI::Option* option;
    bool negated;
  };

  static CLI::Option* one_value(CLI::Option* option) {
    return option->expected(1)->allow_extra_args(false)->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  }

  void add(OptionEntry const& entry) {
    std::string const dashes = dashed(entry.name);
    if (entry.takes == Takes::nothing) {
      words_.push_back({&entry, app_.add_flag(dashes), false});
      words_.push_back({&entry, app_.add_flag(dashed("no-" + entry.name)), true});
    } else {
      CLI::Option* option = one_value(app_.add_option(dashes));
      if (entry.takes == Takes::optional_text) option->expected(0, 1);
      words_.push_back({&entry, option, false});
    }
  }

  static OptionValue value_of(Words const& words, std::string const& origin) {
    if (words.entry->takes == Takes::nothing) return !words.negated;
    auto const& results = words.option->results();
    std::string const text = results.empty() ? "" : results.front();
    if (words.entry->takes == Takes::optional_text && text.empty()) return std::string("-");
    return value_from_text(*words.entry, text, origin);
  }

  Usage const& usage_;
  std::vector<std::string> const& names_;
  CLI::App app_;
  CLI::Option *help_, *version_, *config_, *command_ = nullptr;
  std::vector<Words> words_;
};

/// What the file gives and the command line doesn't. The two names of one option count as one.
std::vector<GivenOption> merged(std::vector<GivenOption> line, std::vector<GivenOption> file) {
  auto same = [](std::string const& a, std::string const& b) {
    auto meaning = [](std::string const& name) {
      if (name == "accumulate") return std::string("microbatches");
      if (name == "batch-per-replica") return std::string("batch");
      return name;
    };
    return meaning(a) == meaning(b);
  };
  std::size_t const from_line = line.size();
  for (GivenOption& option : file) {
    bool const overruled = std::any_of(line.begin(), line.begin() + std::ptrdiff_t(from_line),
                                       [&](GivenOption const& other) { return same(other.entry->name, option.entry->name); });
    if (!overruled) line.push_back(std::move(option));
  }
  return line;
}

}  // namespace

ParseResult parse_options(Usage const& usage, int argc, char const* const* argv) {
  expect(argc >= 1, "argv[0] is the program");
  std::vector<std::string> const names = offered_names(usage);
  CommandLine line(usage, names);
  line.parse(argc, argv);
  if (line.wants_help()) return {std::nullopt, help_text(usage, names)};
  if (line.wants_version()) return {std::nullopt, full_version_text(usage.program)};
  line.refuse_unknown();
  Command const command = line.command();
  std::vector<GivenOption> given = line.given();
  if (std::string const file = line.config(); !file.empty()) given = merged(std::move(given), read_config(file, names));
  ParseResult result{complete(usage, command, std::move(given)), ""};
  result.options->argv.assign(argv, argv + argc);
  return result;
}

ParseResult parse_options(std::string const& program, int argc, char const* const* argv) {
  return parse_options(Usage{.program = program}, argc, argv);
}

}  // namespace shardmark
