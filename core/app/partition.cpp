// --balance, --split-points: which blocks each chunk of a pipeline has.

#include <fmt/format.h>

#include <charconv>

#include "app/nearest.hpp"
#include "app/strategy.hpp"
#include "schedule/partition.hpp"

namespace shardmark {
namespace {

constexpr char const* automatic = "auto";

/// "2,2,4" as numbers of blocks.
std::vector<int> counts_from(std::string const& text) {
  std::vector<int> out;
  char const* at = text.data();
  char const* const end = at + text.size();
  for (;;) {
    int count = 0;
    auto const [next, error] = std::from_chars(at, end, count);
    require_input(
        error == std::errc() && count > 0 && (next == end || *next == ','),
        {fmt::format("--balance {}", printable(text)), "blocks of each chunk are expected, separated by commas", "for example 2,2,4"});
    out.push_back(count);
    if (next == end) return out;
    at = next + 1;
  }
}

std::vector<std::string> names_from(std::string const& text) {
  std::vector<std::string> out(1);
  for (char letter : text)
    if (letter == ',')
      out.emplace_back();
    else
      out.back() += letter;
  return out;
}

}  // namespace

Decisions decisions_without_flush(Options const& options) {
  return options.clip_norm > 0 || options.tied_embeddings ? Decisions::joint : Decisions::per_lane;
}

Prediction predict_pipeline(Options const& options, Pipeline kind, PipelineShape shape) {
  if (options.written) return {};  // no formula for what a user wrote
  ClosedForms forms = closed_forms(kind, shape, {});
  if (options.recompute != "none") forms.lane_idle = forms.barrier_idle = forms.bubble = std::nullopt;
  Prediction out;
  out.pipeline = std::move(forms);
  return out;
}

std::vector<int> partition(Options const& options, std::vector<BlockShape> const& blocks, int chunks) {
  if (!options.split_points.empty()) {
    std::vector<std::string> names;
    for (BlockShape const& block : blocks) names.push_back(block.name);
    return cut_at(names_from(options.split_points), names, chunks);
  }
  if (options.balance != automatic) return cut_by_counts(counts_from(options.balance), int(blocks.size()), chunks);
  std::vector<double> costs;
  for (BlockShape const& block : blocks) costs.push_back(block.forward_cost + block.input_cost + block.weight_cost);
  return cut_evenly(costs, chunks);
}

}  // namespace shardmark
