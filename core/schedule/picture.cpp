#include "schedule/picture.hpp"

#include <algorithm>

namespace shardmark {

char letter(Do what) {
  switch (what) {
    case Do::forward:
      return 'F';
    case Do::backward:
    case Do::backward_input:
      return 'B';
    case Do::backward_weight:
      return 'W';
    case Do::recompute:
      return 'C';
    case Do::reduce:
      return 'R';
    default:
      return 'U';
  }
}

std::vector<int> runs_of(std::vector<int> const& lane_of_block) {
  std::vector<int> run(lane_of_block.size());
  for (std::size_t b = 1; b < run.size(); ++b) run[b] = run[b - 1] + (lane_of_block[b] == lane_of_block[b - 1] ? 0 : 1);
  return run;
}

std::vector<int> lanes_of_runs(std::vector<int> const& lane_of_block) {
  std::vector<int> lanes;
  for (std::size_t b = 0; b < lane_of_block.size(); ++b) {
    if (b == 0 || lane_of_block[b] != lane_of_block[b - 1]) lanes.push_back(lane_of_block[b]);
  }
  return lanes;
}

std::vector<std::string> chunk_suffixes(std::vector<int> const& lane_of_chunk) {
  std::vector<std::string> suffixes;
  for (std::size_t chunk = 0; chunk < lane_of_chunk.size(); ++chunk) {
    auto const here = lane_of_chunk.begin() + std::ptrdiff_t(chunk);
    bool const only = std::count(lane_of_chunk.begin(), lane_of_chunk.end(), *here) == 1;
    suffixes.emplace_back(only ? "" : std::string(1, char('a' + std::count(lane_of_chunk.begin(), here, *here) % 26)));
  }
  return suffixes;
}

}  // namespace shardmark
