#include "schedule/partition.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <numeric>

#include "base/error.hpp"

namespace shardmark {
namespace {

void require_enough_blocks(int blocks, int pieces) {
  require_input(pieces >= 1 && pieces <= blocks,
                {fmt::format("{} pieces for {} blocks", pieces, blocks), "each stage (and chunk of it) needs a block",
                 fmt::format("use {} stages or fewer, or a model with more layers", blocks)});
}

}  // namespace

std::vector<int> cut_evenly(std::span<double const> cost_of_block, int pieces) {
  return cut_evenly(cost_of_block, pieces, {[](int, int, int) { return 0.0; }, 0});
}

std::vector<int> cut_evenly(std::span<double const> cost_of_block, int pieces, MemoryLimit const& memory) {
  int const blocks = int(cost_of_block.size());
  require_enough_blocks(blocks, pieces);
  double const impossible = std::numeric_limits<double>::infinity();
  std::vector<double> until(std::size_t(blocks) + 1, 0.0);  // cost of the blocks before
  std::partial_sum(cost_of_block.begin(), cost_of_block.end(), until.begin() + 1);
  // worst[n][b]: the least largest cost of n pieces that end before block b; cut[n][b]: where the last of them begins.
  std::vector worst(std::size_t(pieces) + 1, std::vector(std::size_t(blocks) + 1, impossible));
  std::vector cut(std::size_t(pieces) + 1, std::vector(std::size_t(blocks) + 1, 0));
  worst[0][0] = 0;
  for (std::size_t n = 1; n <= std::size_t(pieces); ++n) {
    for (std::size_t end = n; end <= std::size_t(blocks); ++end) {
      for (std::size_t begin = n - 1; begin < end; ++begin) {
        double const cost = std::max(worst[n - 1][begin], until[end] - until[begin]);
        if (cost == impossible || cost > worst[n][end]) continue;
        if (memory.bytes(int(n) - 1, int(begin), int(end)) > memory.limit) continue;
        worst[n][end] = cost;
        cut[n][end] = int(begin);
      }
    }
  }
  require_input(worst.back().back() < impossible,
                {fmt::format("{} blocks don't fit into {} stages", blocks, pieces),
                 fmt::format("some stage would need more than {:.0f} MiB whichever way they are cut", memory.limit / (1 << 20)),
                 "use more stages, smaller micro-batches, or recomputation"});
  std::vector<int> out(std::size_t(pieces) + 1, blocks);
  for (std::size_t n = std::size_t(pieces); n > 0; --n) out[n - 1] = cut[n][std::size_t(out[n])];
  return out;
}

std::vector<int> cut_by_counts(std::vector<int> const& counts, int blocks, int pieces) {
  std::string const shown = fmt::format("{}", fmt::join(counts, ","));
  require_input(int(counts.size()) == pieces, {fmt::format("balance {} names {} pieces", shown, counts.size()),
                                               fmt::format("the pipeline has {}", pieces), "give one number of blocks for each"});
  std::vector<int> out{0};
  for (int count : counts) {
    require_input(count >= 1 && count <= blocks - out.back(),
                  {fmt::format("balance {}", shown), fmt::format("each piece has a block, and all pieces together have {}", blocks),
                   fmt::format("give numbers that add up to {}", blocks)});
    out.push_back(out.back() + count);
  }
  require_input(out.back() == blocks, {fmt::format("balance {} has {} blocks", shown, out.back()),
                                       fmt::format("the model has {}; each is in exactly one piece", blocks),
                                       fmt::format("give numbers that add up to {}", blocks)});
  return out;
}

std::vector<int> cut_at(std::vector<std::string> const& names, std::vector<std::string> const& block_names, int pieces) {
  require_input(int(names.size()) == pieces - 1, {fmt::format("{} split points for {} pieces", names.size(), pieces),
                                                  "each piece but the first begins at one", fmt::format("name {} blocks", pieces - 1)});
  std::vector<int> out{0};
  for (std::string const& name : names) {
    auto const found = std::find(block_names.begin(), block_names.end(), name);
    require_input(found != block_names.end(),
                  {fmt::format("no block is named {}", name), "", fmt::format("the blocks are {}", fmt::join(block_names, ", "))});
    int const begin = int(found - block_names.begin());
    require_input(begin > out.back(), {fmt::format("split point {}", name), "a piece would be empty",
                                       "name blocks in the model's order, each once, not the first one"});
    out.push_back(begin);
  }
  out.push_back(int(block_names.size()));
  return out;
}

}  // namespace shardmark
