#include <algorithm>

#include "base/error.hpp"
#include "schedule/schedule.hpp"

namespace shardmark {

Schedule plan_delayed(std::string name, std::vector<int> const& delays, int micros) {
  expect(!delays.empty() && micros > 0, "a chain of chunks and at least one micro-batch");
  int const chunks = int(delays.size());
  Schedule schedule;
  schedule.name = std::move(name);
  schedule.lane_of_chunk.assign(delays.size(), 0);
  schedule.weights = Weights::delayed;
  schedule.micros_per_window = micros;
  schedule.leaves = {1, micros};
  std::vector<Action> body;
  for (int m = 0; m < micros; ++m) {
    auto const add = [&](Do what, int chunk) {
      body.push_back({.what = what, .chunk = {chunk}, .micro = {m}, .version = {-delays[std::size_t(chunk)]}});
    };
    for (int c = 0; c < chunks; ++c) add(Do::forward, c);
    for (int c = chunks; c-- > 0;) add(Do::backward, c);
  }
  body.push_back({.what = Do::reduce});
  body.push_back({.what = Do::update, .version = {1}});
  schedule.lanes.push_back({.body = std::move(body)});
  return schedule;
}

}  // namespace shardmark
