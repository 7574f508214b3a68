// --inject KIND:key=value,...

#include <fmt/format.h>

#include <array>

#include "app/choices.hpp"
#include "app/nearest.hpp"
#include "app/option_table.hpp"

namespace shardmark {
namespace {

constexpr double longest_delay_seconds = 1e6;

/// Cuts `text` at the first `mark`; all of it, and nothing, when there is none.
std::pair<std::string, std::string> cut(std::string const& text, char mark) {
  auto const at = text.find(mark);
  if (at == std::string::npos) return {text, ""};
  return {text.substr(0, at), text.substr(at + 1)};
}

void set_part(Fault& fault, std::string const& part, std::string const& origin) {
  static std::array<std::string, 4> const keys{"rank", "step", "tensor", "seconds"};
  auto const [key, text] = cut(part, '=');
  std::string const where = fmt::format("{}, {}", origin, key);
  auto number = [&](Takes takes) {
    OptionEntry entry;
    entry.takes = takes;
    return value_from_text(entry, text, where);
  };
  if (key == "rank") {
    auto const rank = std::get<std::int64_t>(number(Takes::whole_number));
    require_input(rank >= 0 && rank < limits::ranks, {fmt::format("{} {}", where, rank), "no rank has this number", ""});
    fault.rank = int(rank);
  } else if (key == "step") {
    fault.step = std::get<std::int64_t>(number(Takes::whole_number));
    require_input(fault.step >= 1, {fmt::format("{} {}", where, fault.step), "steps count from 1", ""});
  } else if (key == "tensor") {
    require_input(!text.empty(), {where + " is empty", "", "name a parameter, or leave it out"});
    fault.tensor = text;
  } else if (key == "seconds") {
    require_input(fault.kind == Fault::Kind::delay, {where, "only delay takes seconds", ""});
    fault.seconds = std::get<double>(number(Takes::number));
    require_input(fault.seconds > 0, {fmt::format("{} {}", where, fault.seconds), "above 0", ""});
    require_input(fault.seconds <= longest_delay_seconds,
                  {fmt::format("{} {}", where, fault.seconds), fmt::format("at most {:g}", longest_delay_seconds), ""});
  } else {
    fail_input({fmt::format("{}: unknown key {}", origin, printable(key)), "rank, step, tensor, seconds", did_you_mean(key, keys)});
  }
}

}  // namespace

Fault parse_fault(std::string const& text, std::string const& origin) {
  auto [kind, rest] = cut(text, ':');
  Fault fault;
  fault.kind = choose<Fault::Kind>(kind, origin);
  while (!rest.empty()) {
    auto [part, others] = cut(rest, ',');
    set_part(fault, part, origin);
    rest = std::move(others);
  }
  return fault;
}

std::string to_string(Fault const& fault) {
  std::string text = fmt::format("{}:rank={},step={}", word_of(fault.kind), fault.rank, fault.step);
  if (!fault.tensor.empty()) text += ",tensor=" + fault.tensor;
  if (fault.kind == Fault::Kind::delay) text += fmt::format(",seconds={}", fault.seconds);
  return text;
}

}  // namespace shardmark
