// One lane, one micro-batch after another, M=3:
//   stage 0 | F0 B0 F1 B1 F2 B2  R  U

#include "base/error.hpp"
#include "schedule/schedule.hpp"

namespace shardmark {

Schedule plan_sequential(std::string name, int micros) { return plan_sequential(std::move(name), SumShape{1, micros}); }

Schedule plan_sequential(std::string name, SumShape leaves) {
  expect(leaves.outer >= 1 && leaves.inner >= 1, "a schedule needs at least one micro-batch");
  Schedule schedule;
  schedule.name = std::move(name);
  schedule.lane_of_chunk = {0};
  schedule.leaves = leaves;
  schedule.micros_per_window = leaves.leaves();
  std::vector<Action>& body = schedule.lanes.emplace_back().body;
  for (int m = 0; m < leaves.leaves(); ++m) {
    body.push_back({.what = Do::forward, .chunk = {0}, .micro = {m}, .version = {0}});
    body.push_back({.what = Do::backward, .chunk = {0}, .micro = {m}, .version = {0}});
  }
  body.push_back({.what = Do::reduce});
  body.push_back({.what = Do::update, .version = {1}});
  return schedule;
}

}  // namespace shardmark
