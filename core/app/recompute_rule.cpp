#include "app/recompute_rule.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>

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

namespace {

/// K of "every:K" that keeps about as many inputs as a segment has blocks.
int root_of_blocks(Schedule const& schedule) {
  double const blocks = double(schedule.lane_of_chunk.size()) / double(schedule.lanes.size());
  return std::max(1, int(std::lround(std::sqrt(blocks))));
}

KeepRule selective(Options const& options, std::vector<BlockShape> const& blocks) {
  bool const any = std::any_of(blocks.begin(), blocks.end(), [](BlockShape const& block) { return block.selective_cost > 0; });
  require_input(any, {fmt::format("--recompute selective for model {}", name(options.model)),
                      "it runs attention again, and this model has none", "use --model gpt, or another rule"});
  return recompute_selective(blocks);
}

KeepRule rule_named(Options const& options, Schedule const& schedule, std::vector<BlockShape> const& blocks) {
  std::string const& word = options.recompute;
  if (word == "all") return recompute_all();
  if (word == "sqrt") return recompute_every(root_of_blocks(schedule));
  if (word.starts_with(every)) return recompute_every(segment_from(std::string_view(word).substr(every.size())));
  if (word == "except-last-micro") return except_last_micro(recompute_all(), schedule.micros_per_window);
  if (word == "last-stage-off") return last_stage_off(recompute_all(), int(schedule.lanes.size()));
  if (word == "selective") return selective(options, blocks);
  fail_input({fmt::format("--recompute {}", printable(word)), "not one of its values",
              "choose one of none, all, every:K, sqrt, selective, budget:MIB, except-last-micro, last-stage-off"});
}

}  // namespace

std::optional<KeepRule> recompute_rule(Options const& options, Schedule const& schedule, std::vector<BlockShape> const& blocks) {
  if (options.recompute == "none") return {};
  KeepRule const rule = rule_named(options, schedule, blocks);
  if (schedule.lanes.size() > 1) return rule;
  return last_block_off(rule, int(schedule.lane_of_chunk.size()));
}

}  // namespace shardmark
