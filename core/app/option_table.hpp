#pragma once
// How every option is spelt, what it takes and what it means: one table, from which the command line, the configuration file,
// --help and the description in records are made.

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "app/options.hpp"

namespace shardmark {

/// Larger requests are slips of the finger; no product of these overflows 64 bits where the program forms it.
namespace limits {
inline constexpr std::int64_t layers = 10'000;
inline constexpr std::int64_t width = 1 << 20;
inline constexpr std::int64_t vocabulary = 1 << 24;
inline constexpr std::int64_t batch = 1 << 24;
inline constexpr std::int64_t micros = 1 << 20;
inline constexpr std::int64_t steps = 1'000'000'000;
inline constexpr std::int64_t ranks = 1 << 20;
inline constexpr std::int64_t thread_ranks = 256;
inline constexpr std::int64_t rounds = 1000;
}  // namespace limits

/// A value before it is checked against its option; monostate: absent.
using OptionValue = std::variant<std::monostate, bool, std::int64_t, double, std::string>;

enum class Takes : std::uint8_t { nothing, whole_number, number, text, optional_text };

/// The commands in which an option means something.
using CommandSet = std::uint8_t;
constexpr CommandSet in(Command command) { return CommandSet(1u << unsigned(command)); }
inline constexpr CommandSet in_all = in(Command::plan) | in(Command::verify) | in(Command::bench);

/// some: programs say in Usage::extra that they offer it.
enum class Audience : std::uint8_t { all, some };

struct OptionEntry {
  std::string name;        // without dashes; a flag that can be switched off also answers to no-NAME
  std::string group;       // heading in --help
  std::string value_name;  // N, FILE, sgd|adamw; empty for flags
  std::string meaning;     // for --help, with the default in brackets; of no-NAME for a flag that is on unless it is switched off
  Takes takes = Takes::text;
  CommandSet commands = in_all;
  Audience audience = Audience::all;
  /// Checks and assigns. `origin` names the option as the user wrote it. @throws BadRequest
  std::function<void(Options&, OptionValue const&, std::string const& origin)> assign;
  /// The value in use; monostate where the option doesn't apply.
  std::function<OptionValue(Options const&)> read;
};

/// All options, in the order of --help.
std::vector<OptionEntry> const& option_table();

/// The entry called `name`, or nullptr.
OptionEntry const* find_option(std::string_view name);

/// Options that the documentation names and that this version lacks.
bool is_of_later_version(std::string_view name);

/// Names of all options, for suggestions.
std::vector<std::string> option_names();

/// Text of an option's value from the command line. @throws BadRequest when a number is expected and it isn't one.
OptionValue value_from_text(OptionEntry const& option, std::string const& text, std::string const& origin);

/// "bitflip:rank=3,tensor=NAME,step=1". @throws BadRequest
Fault parse_fault(std::string const& text, std::string const& origin);
std::string to_string(Fault const& fault);

}  // namespace shardmark
