#include "planners.hpp"

#include <algorithm>
#include <functional>
#include <numeric>

namespace shardmark::test {
namespace {

Schedule empty_pipeline(std::string name, int stages, int micros, int chunks_per_stage = 1) {
  Schedule schedule;
  schedule.name = std::move(name);
  for (int chunk = 0; chunk < stages * chunks_per_stage; ++chunk) schedule.lane_of_chunk.push_back(chunk % stages);
  schedule.lanes.resize(std::size_t(stages));
  schedule.micros_per_window = micros;
  schedule.leaves = {1, micros};
  return schedule;
}

void add(std::vector<Action>& actions, Do what, int chunk, int micro, int version = 0) {
  actions.push_back({.what = what, .chunk = {chunk}, .micro = {micro}, .version = {version}});
}

void finish(std::vector<Action>& actions, int version = 1) {
  actions.push_back({.what = Do::reduce});
  actions.push_back({.what = Do::update, .version = {version}});
}

}  // namespace

Schedule plan_gpipe(int stages, int micros) {
  Schedule schedule = empty_pipeline("gpipe", stages, micros);
  for (int s = 0; s < stages; ++s) {
    auto& body = schedule.lanes[std::size_t(s)].body;
    for (int m = 0; m < micros; ++m) add(body, Do::forward, s, m);
    for (int m = micros; m-- > 0;) add(body, Do::backward, s, m);
    finish(body);
  }
  return schedule;
}

Schedule plan_1f1b(int stages, int micros) {
  Schedule schedule = empty_pipeline("1f1b", stages, micros);
  for (int s = 0; s < stages; ++s) {
    auto& body = schedule.lanes[std::size_t(s)].body;
    int const warm = std::min(micros, stages - 1 - s);
    for (int m = 0; m < warm; ++m) add(body, Do::forward, s, m);
    for (int m = warm; m < micros; ++m) {
      add(body, Do::forward, s, m);
      add(body, Do::backward, s, m - warm);
    }
    for (int m = micros - warm; m < micros; ++m) add(body, Do::backward, s, m);
    finish(body);
  }
  return schedule;
}

Schedule plan_split(int stages, int micros) {
  Schedule schedule = empty_pipeline("split", stages, micros);
  for (int s = 0; s < stages; ++s) {
    auto& body = schedule.lanes[std::size_t(s)].body;
    int forward = 0, weight = 0;
    while (forward < std::min(micros, stages - s)) add(body, Do::forward, s, forward++);
    for (int m = 0; m < micros; ++m) {
      add(body, Do::backward_input, s, m);
      if (m >= s) add(body, Do::backward_weight, s, weight++);
      if (forward < micros) add(body, Do::forward, s, forward++);
    }
    while (weight < micros) add(body, Do::backward_weight, s, weight++);
    finish(body);
  }
  return schedule;
}

Schedule plan_interleaved(int stages, int micros, int chunks) {
  Schedule schedule = empty_pipeline("interleaved", stages, micros, chunks);
  int const total = micros * chunks, group = stages * chunks;
  for (int s = 0; s < stages; ++s) {
    auto& body = schedule.lanes[std::size_t(s)].body;
    auto const step = [&](Do what, int k) {
      int const turn = k % group / stages;
      int const chunk = what == Do::forward ? turn : chunks - 1 - turn;
      add(body, what, chunk * stages + s, k / group * stages + k % stages);
    };
    int const warm = std::min(total, (stages - 1 - s) * 2 + (chunks - 1) * stages);
    for (int k = 0; k < warm; ++k) step(Do::forward, k);
    for (int k = warm; k < total; ++k) {
      step(Do::forward, k);
      step(Do::backward, k - warm);
    }
    for (int k = total - warm; k < total; ++k) step(Do::backward, k);
    finish(body);
  }
  return schedule;
}

Schedule plan_async(int stages, int micros, Delay delay) {
  Schedule schedule = empty_pipeline("async", stages, micros);
  schedule.weights = delay == Delay::stash ? Weights::latest : Weights::delayed;
  int const warm_windows = (stages - 1 + micros - 1) / micros;
  int const warm = warm_windows * micros;
  for (int s = 0; s < stages; ++s) {
    Lane& lane = schedule.lanes[std::size_t(s)];
    int const behind = stages - 1 - s;
    auto const version = [&](int m) {
      switch (delay) {
        case Delay::stash:
          return m - behind;
        case Delay::vertical:
          return m - (stages - 1);
        case Delay::two_buffers:
          return (m + micros) / micros - 2;
      }
      return 0;
    };
    auto const backward = [&](std::vector<Action>& actions, int m) {
      add(actions, Do::backward, s, m, version(m));
      if ((m + 1) % micros == 0) finish(actions, (m + 1) / micros);
    };
    auto const both = [&](std::vector<Action>& actions, int begin, int end) {
      for (int m = begin; m < end; ++m) {
        add(actions, Do::forward, s, m, version(m));
        if (m >= behind) backward(actions, m - behind);
      }
    };
    both(lane.prologue, 0, warm);
    both(lane.body, warm, warm + micros);
    for (int m = warm - behind; m < warm; ++m) backward(lane.epilogue, m);
  }
  return schedule;
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

Lowered lowered(Schedule const& coarse, int blocks_per_chunk, Tied tied, Overlap overlap) {
  auto blocks = chain(int(coarse.lane_of_chunk.size()) * blocks_per_chunk, tied);
  Schedule schedule = refine(coarse, blocks, even_partition(coarse, blocks_per_chunk));
  schedule = bucket(std::move(schedule), blocks, {.cap_bytes = 1000, .first_cap_bytes = 500});
  return {lower(std::move(schedule), blocks, axes(Axis::data), overlap), std::move(blocks)};
}

Costs compute_only(BlockTimes times) {
  Costs costs;
  costs.action = [times](Action const& action, int) {
    switch (action.what) {
      case Do::forward:
      case Do::recompute:
        return times.forward;
      case Do::backward:
        return times.input + times.weight;
      case Do::backward_input:
        return times.input;
      case Do::backward_weight:
        return times.weight;
      default:
        return 0.0;
    }
  };
  costs.transfer = [](Posting const&, Schedule const&) { return 0.0; };
  return costs;
}

}  // namespace shardmark::test
