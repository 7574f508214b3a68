// Idle time and activations: the papers named in planners.hpp; domains found over a grid of shapes and costs, and tested on it.
// p stages, m micro-batches, v chunks a stage, stage i from 0; F, B, W forward, input and weight half of backward.

#include "schedule/closed_forms.hpp"

#include <algorithm>

#include "schedule/plan_pipeline.hpp"

namespace shardmark {
namespace {

struct Case {
  int p, m, v;
  double F, B, W;
};

struct Idle {
  std::optional<double> lane, barrier;
};

Idle idle(Pipeline kind, Case const& c) {
  double const first_stages = c.p - 1;
  double const all = c.F + c.B + c.W;
  Idle const none;
  switch (kind) {
    case Pipeline::model_parallel:
      return {first_stages * c.m * all, first_stages * c.m * all};
    case Pipeline::gpipe:
    case Pipeline::one_forward_one_backward:
      return {first_stages * all, first_stages * all};
    case Pipeline::interleaved:
      if (c.v > 1 && c.m < c.p) return none;
      return {first_stages * all / c.v, first_stages * all / c.v};
    case Pipeline::zb_h1:
      if (c.m < c.p || c.W > std::min(c.F, c.B)) return none;
      return {first_stages * (c.F + c.B - c.W), first_stages * (c.F + c.B - c.W)};
    case Pipeline::zb_h2:
      if (c.m < 2 * c.p - 1 || c.W > c.F || 2 * c.W > c.F + c.B) return none;
      return {first_stages * (c.F + c.B - 2 * c.W), first_stages * std::max(c.F, c.F + c.B - 2 * c.W)};
    case Pipeline::zb_v:
      if (c.m < 2 * c.p - 1 || c.F != c.B || c.B != c.W) return none;
      return {0, first_stages * c.F / 2};
    case Pipeline::stash:
    case Pipeline::vertical:
    case Pipeline::two_buffers:
      return {0, 0};
  }
  return none;
}

/// Forwards that stage i has run before its first backward, at most.
std::optional<int> stashes(Pipeline kind, Case const& c, int i) {
  int const behind = c.p - 1 - i;
  switch (kind) {
    case Pipeline::model_parallel:
      return 1;
    case Pipeline::gpipe:
      return c.m;
    case Pipeline::one_forward_one_backward:
    case Pipeline::zb_h1:
      return std::min(c.m, behind + 1);
    case Pipeline::interleaved:
      if (c.v == 1) return std::min(c.m, behind + 1);
      return std::min(c.m * c.v, 2 * behind + (c.v - 1) * longest_round({c.p, c.m, c.v}) + 1);
    case Pipeline::zb_h2:
      return std::min(c.m, 2 * behind + 1);
    case Pipeline::zb_v:
      return {};
    case Pipeline::stash:
    case Pipeline::vertical:
    case Pipeline::two_buffers:
      return behind + 1;
  }
  return {};
}

std::optional<int> held(Pipeline kind, Case const& c, int i) {
  switch (kind) {
    case Pipeline::zb_h1:
      return std::min(c.m, c.p);
    case Pipeline::zb_h2:
      return std::min(c.m, 2 * c.p - 1);
    case Pipeline::zb_v:
      return c.m < 2 * c.p - 1 ? std::optional<int>() : 2 * c.p;
    default:
      return stashes(kind, c, i);
  }
}

template <class Of>
std::optional<std::vector<int>> each_stage(int stages, Of const& of) {
  std::vector<int> out;
  for (int i = 0; i < stages; ++i) {
    std::optional<int> const value = of(i);
    if (!value) return {};
    out.push_back(*value);
  }
  return out;
}

/// Joint decisions under vertical make versions as late as gradients of more updates are held: together p+1 buffers either way.
int versions(Pipeline kind, PipelineShape shape, int i) {
  switch (kind) {
    case Pipeline::stash:
      return shape.stages - i;
    case Pipeline::vertical:
      return shape.decisions == Decisions::joint ? shape.stages - i : shape.stages;
    case Pipeline::two_buffers:
      return 2;
    default:
      return 1;
  }
}

int staleness(Pipeline kind, int stages, int i) {
  switch (kind) {
    case Pipeline::stash:
      return stages - 1 - i;
    case Pipeline::vertical:
      return stages - 1;
    case Pipeline::two_buffers:
      return 1;
    default:
      return 0;
  }
}

int gradients(Pipeline kind, PipelineShape shape, int i) {
  if (shape.decisions == Decisions::per_lane) return 1;
  if (kind == Pipeline::vertical) return i + 1;
  return kind == Pipeline::two_buffers && i > 0 ? 2 : 1;
}

/// Boundaries between chunks that lie on different stages.
std::int64_t crossed(Pipeline kind, Case const& c) {
  if (kind == Pipeline::zb_v) return 2 * (c.p - 1);  // the last stage turns round by itself
  return c.p == 1 ? 0 : std::int64_t(c.p) * c.v - 1;
}

}  // namespace

std::string_view name(Pipeline kind) {
  switch (kind) {
    case Pipeline::model_parallel:
      return "model_parallel";
    case Pipeline::gpipe:
      return "gpipe";
    case Pipeline::one_forward_one_backward:
      return "1f1b";
    case Pipeline::interleaved:
      return "interleaved";
    case Pipeline::zb_h1:
      return "zb-h1";
    case Pipeline::zb_h2:
      return "zb-h2";
    case Pipeline::zb_v:
      return "zb-v";
    case Pipeline::stash:
      return "pipedream-stash";
    case Pipeline::vertical:
      return "pipedream-vertical";
    case Pipeline::two_buffers:
      return "pipedream-2bw";
  }
  return "?";
}

Schedule plan_pipeline(Pipeline kind, PipelineShape shape) {
  switch (kind) {
    case Pipeline::model_parallel:
      return plan_model_parallel(shape);
    case Pipeline::gpipe:
      return plan_gpipe(shape);
    case Pipeline::one_forward_one_backward:
      return plan_1f1b(shape);
    case Pipeline::interleaved:
      return plan_interleaved(shape);
    case Pipeline::zb_h1:
      return plan_zero_bubble(shape, ZeroBubble::h1);
    case Pipeline::zb_h2:
      return plan_zero_bubble(shape, ZeroBubble::h2);
    case Pipeline::zb_v:
      return plan_zero_bubble(shape, ZeroBubble::v);
    case Pipeline::stash:
      return plan_pipedream(shape, Delay::stash);
    case Pipeline::vertical:
      return plan_pipedream(shape, Delay::vertical);
    case Pipeline::two_buffers:
      return plan_pipedream(shape, Delay::two_buffers);
  }
  return {};
}

ClosedForms closed_forms(Pipeline kind, PipelineShape shape, StageSeconds seconds) {
  bool const each_micro = kind == Pipeline::stash || kind == Pipeline::vertical;
  Case const c{shape.stages, each_micro ? 1 : shape.micros, shape.chunks_per_stage, seconds.forward, seconds.input, seconds.weight};
  ClosedForms forms;
  Idle const found = idle(kind, c);
  forms.lane_idle = found.lane;
  forms.barrier_idle = found.barrier;
  if (found.barrier) forms.bubble = *found.barrier / (*found.barrier + c.m * seconds.all());
  forms.stashes = each_stage(c.p, [&](int i) { return stashes(kind, c, i); });
  forms.held = each_stage(c.p, [&](int i) { return held(kind, c, i); });
  for (int i = 0; i < c.p; ++i) {
    forms.versions.push_back(versions(kind, shape, i));
    forms.staleness.push_back(staleness(kind, c.p, i));
    forms.gradients.push_back(gradients(kind, shape, i));
  }
  forms.messages = 2 * crossed(kind, c) * c.m;
  return forms;
}

}  // namespace shardmark
