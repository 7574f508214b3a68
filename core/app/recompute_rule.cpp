#include "app/recompute_rule.hpp"

#include <fmt/format.h>

#include <charconv>

#include "app/nearest.hpp"

namespace shardmark {
namespace {

constexpr std::string_view every = "every:";

int segment_from(std::string_view text) {
  int blocks = 0;
  auto const [end, error] = std::from_chars(text.data(), text.data() + text.size(), blocks);
  require_input(
      error == std::errc() && end == text.data() + text.size(),
      {fmt::format("--recompute every:{}", printable(std::string(text))), "a number of blocks is expected", "for example every:2"});
  return blocks;
}

}  // namespace

std::optional<KeepRule> recompute_rule(Options const& options, Schedule const& schedule) {
  std::string const& word = options.recompute;
  if (word == "none") return {};
  if (word == "all") return recompute_all();
  if (word.starts_with(every)) return recompute_every(segment_from(std::string_view(word).substr(every.size())));
  if (word == "except-last-micro") return except_last_micro(recompute_all(), schedule.micros_per_window);
  if (word == "last-stage-off") return last_stage_off(recompute_all(), int(schedule.lanes.size()));
  bool const later = word == "sqrt" || word == "selective" || word.starts_with("budget:");
  fail_input({fmt::format("--recompute {}", printable(word)), later ? "not in this version" : "not one of its values",
              "choose one of none, all, every:K, except-last-micro, last-stage-off"});
}

}  // namespace shardmark
