// What plan says of pipelines: stage by stage, and beside the others.

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "app/plan.hpp"
#include "app/replay_batch.hpp"
#include "schedule/compare_pipelines.hpp"

namespace shardmark {
namespace {

constexpr std::size_t widest_blocks = 24;

/// "4 (4)": a number and its closed form; "4 (-)" where there is none.
std::string beside(int counted, std::optional<std::vector<int>> const& form, std::size_t stage) {
  return form ? fmt::format("{} ({})", counted, (*form)[stage]) : fmt::format("{} (-)", counted);
}

/// The blocks of a lane, runs joined: "h.0 .. h.2, head".
std::string blocks_of(Job const& job, int lane) {
  auto const& lanes = job.schedule.lane_of_chunk;
  std::string out;
  for (std::size_t first = 0; first < lanes.size(); ++first) {
    if (lanes[first] != lane || (first > 0 && lanes[first - 1] == lane)) continue;
    std::size_t last = first;
    while (last + 1 < lanes.size() && lanes[last + 1] == lane) ++last;
    auto const& blocks = job.model->blocks;
    out += out.empty() ? "" : ", ";
    out += first == last ? blocks[first].name : fmt::format("{} .. {}", blocks[first].name, blocks[last].name);
  }
  return out.size() <= widest_blocks ? out : out.substr(0, widest_blocks - 3) + "...";
}

/// Of one stage and micro-batch, if all stages were alike: the whole model's work by its blocks' shares.
StageSeconds mean_stage(Plan const& plan) {
  StageSeconds sum{0, 0, 0};
  for (BlockShape const& block : plan.job.model->shapes()) {
    sum.forward += block.forward_cost;
    sum.input += block.input_cost;
    sum.weight += block.weight_cost;
  }
  double seconds = 0;
  for (double lane : plan.seconds_of_lane) seconds += lane;
  double const unit = seconds / plan.job.micros / double(plan.ranks.size()) / sum.all();
  return {unit * sum.forward, unit * sum.input, unit * sum.weight};
}

double mean_boundary_bytes(Job const& job) {
  double sum = 0;
  std::size_t const edges = job.model->blocks.size() - 1;
  for (std::size_t edge = 1; edge <= edges; ++edge) sum += boundary_bytes(job, ChunkId{std::int32_t(edge)});
  return edges > 0 ? sum / double(edges) : 0;
}

}  // namespace

std::string stage_rows(Plan const& plan) {
  ClosedForms const none;
  ClosedForms const& forms = plan.prediction.pipeline ? *plan.prediction.pipeline : none;
  auto const known = [](std::vector<int> const& form) { return form.empty() ? std::nullopt : std::optional(form); };
  std::string out = "per stage and global batch, (formula); live and held in chunks x micro-batches\n";
  out += fmt::format(" {:>5}  {:<{}}{:>10}{:>10}{:>10}{:>10}{:>12}{:>16}\n", "stage", "blocks", widest_blocks, "live", "held", "versions",
                     "lag", "sends", "MB");
  for (std::size_t stage = 0; stage < plan.drawn_proof.lanes.size(); ++stage) {
    LaneFacts const& facts = plan.drawn_proof.lanes[stage];
    DryRun const& counted = plan.ranks[stage];
    Sent const formula = sent_by_formula(plan.job, int(stage));
    out += fmt::format(" {:>5}  {:<{}}{:>10}{:>10}{:>10}{:>10}{:>12}{:>16}\n", stage, blocks_of(plan.job, int(stage)), widest_blocks,
                       beside(facts.peak_stashes, forms.stashes, stage), beside(facts.peak_held, forms.held, stage),
                       beside(facts.peak_versions, known(forms.versions), stage), beside(facts.staleness, known(forms.staleness), stage),
                       fmt::format("{} ({})", counted.messages, formula.messages),
                       fmt::format("{:.3f} ({:.3f})", double(counted.message_bytes) * 1e-6, double(formula.bytes) * 1e-6));
  }
  out += " live until backward or its input half, held until the weight half; lag of the weights, in updates\n";
  std::vector<int> gradients;
  for (LaneFacts const& facts : plan.drawn_proof.lanes) gradients.push_back(facts.peak_gradients);
  if (*std::ranges::max_element(gradients) > 1)
    out += fmt::format(" stages decide on updates together: gradients of {} updates held at once (formula {})\n", fmt::join(gradients, " "),
                       fmt::join(forms.gradients, " "));
  if (forms.bubble)
    out += fmt::format(" bubble by formula {:.1f} %, at equal stages whose three parts cost the same\n", *forms.bubble * 100);
  return out;
}

std::string pipelines_table(Options const& options, Strategy const& strategy, int ranks) {
  Options plain = options;
  plain.recompute = "none";  // costs are those of the parts themselves
  Plan const plan = make_plan(plain, strategy, ranks);
  StageSeconds const stage = mean_stage(plan);
  constexpr double ms = 1e3;
  std::string out = fmt::format(
      "pipelines of {} equal stages, {} micro-batches; ms of a stage and micro-batch: forward {:.3f}, backward {:.3f} + {:.3f}\n\n", ranks,
      options.micros, stage.forward * ms, stage.input * ms, stage.weight * ms);
  out += to_table(compare_pipelines({.stages = ranks,
                                     .micros = options.micros,
                                     .chunks_per_stage = options.virtual_stages,
                                     .decisions = decisions_without_flush(options)},
                                    {stage.forward * ms, stage.input * ms, stage.weight * ms}),
                  mean_boundary_bytes(plan.job));
  out += "\nwindow: ms of a global batch, without recomputation and with messages that take no time; live: whole stages x micro-batches\n";
  return out;
}

}  // namespace shardmark
