#include "planners.hpp"

namespace shardmark::test {
namespace {

void add(std::vector<Action>& actions, Do what, int chunk, int micro, int version = 0) {
  actions.push_back({.what = what, .chunk = {chunk}, .micro = {micro}, .version = {version}});
}

}  // namespace

Schedule plan_joint(PipelineShape shape, Delay delay) {
  shape.decisions = Decisions::joint;
  return plan_pipedream(shape, delay);
}

Tied can_tie(Schedule const& coarse) { return coarse.decisions == Decisions::joint ? Tied::yes : Tied::no; }

std::vector<NamedPlanner> all_planners() {
  auto const with = [](auto plan, auto option) { return [=](PipelineShape shape) { return plan(shape, option); }; };
  return {{"ModelParallel", plan_model_parallel},
          {"GPipe", with(plan_gpipe, BackwardOrder::newest_first)},
          {"GPipeOldestFirst", with(plan_gpipe, BackwardOrder::oldest_first)},
          {"OneForwardOneBackward", plan_1f1b},
          {"Interleaved", plan_interleaved, {1, 2, 3, 4}},
          {"ZeroBubbleH1", with(plan_zero_bubble, ZeroBubble::h1)},
          {"ZeroBubbleH2", with(plan_zero_bubble, ZeroBubble::h2)},
          {"ZeroBubbleV", with(plan_zero_bubble, ZeroBubble::v), {2}},
          {"Stash", with(plan_pipedream, Delay::stash)},
          {"Vertical", with(plan_pipedream, Delay::vertical)},
          {"TwoBuffers", with(plan_pipedream, Delay::two_buffers), {1}, 1},
          {"VerticalJoint", with(plan_joint, Delay::vertical)},
          {"TwoBuffersJoint", with(plan_joint, Delay::two_buffers), {1}, 1}};
}

void over_shapes(NamedPlanner const& planner, std::function<void(PipelineShape)> const& body) {
  for (int stages = 1; stages <= 8; ++stages) {
    for (int micros = 1; micros <= 16; ++micros) {
      for (int chunks : planner.chunks) {
        PipelineShape const shape{stages, micros, chunks};
        if (micros >= planner.least_micros_per_stage * stages) body(shape);
      }
    }
  }
}

Schedule with_recomputation(Schedule coarse) {
  for (Lane& lane : coarse.lanes) {
    for (Section section : sections) {
      std::vector<Action> out;
      for (Action const& action : lane[section]) {
        if (action.what == Do::backward || action.what == Do::backward_input) {
          add(out, Do::recompute, action.chunk.v, action.micro.v, action.version.v);
        }
        out.push_back(action);
        if (action.what == Do::forward) out.back().keeps = Kept::input;
      }
      lane[section] = out;
    }
  }
  return coarse;
}

std::vector<BlockShape> chain(int count, Tied tied) {
  std::vector<BlockShape> blocks;
  for (int b = 0; b < count; ++b) {
    blocks.push_back({.name = "block" + std::to_string(b), .produces = {{{b}, 0}}, .elements = {100 + 7 * b}});
  }
  if (tied == Tied::yes) {
    blocks.back().produces.push_back({{0}, 1});
    blocks.back().elements.push_back(100);
  }
  return blocks;
}

std::vector<int> even_partition(Schedule const& coarse, int blocks_per_chunk) {
  std::vector<int> first(coarse.lane_of_chunk.size() + 1);
  for (std::size_t c = 0; c < first.size(); ++c) first[c] = int(c) * blocks_per_chunk;
  return first;
}

Lowered lowered(Schedule const& coarse, int blocks_per_chunk, Tied tied, Overlap overlap, Matching matching) {
  auto blocks = chain(int(coarse.lane_of_chunk.size()) * blocks_per_chunk, tied);
  Schedule schedule = refine(coarse, blocks, even_partition(coarse, blocks_per_chunk));
  schedule = bucket(std::move(schedule), blocks, {.cap_bytes = 1000, .first_cap_bytes = 500});
  Schedule out = lower(schedule, blocks, axes(Axis::data), overlap, matching);
  return {std::move(out), std::move(blocks)};
}

Costs compute_only(ChunkSeconds seconds) {
  return {[seconds](Action const& action, int) { return seconds.of(action); }, [](Posting const&, Schedule const&) { return 0.0; }};
}

}  // namespace shardmark::test
