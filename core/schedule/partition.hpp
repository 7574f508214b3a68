#pragma once
// Where a chain of blocks is cut into the chunks of a pipeline. A cut is a list like refine()'s: piece i has the blocks
// [out[i], out[i+1]); every block is in exactly one piece and none is empty.

#include <functional>
#include <span>
#include <string>
#include <vector>

namespace shardmark {

/// Contiguous pieces whose largest cost is least; of those, the last piece is as short as possible, then the one before it, and so on (the
/// last stage also has the loss). Dynamic programming, O(pieces x blocks^2).
/// @param cost_of_block seconds or any unit, >= 0
/// @throws BadRequest for more pieces than blocks
std::vector<int> cut_evenly(std::span<double const> cost_of_block, int pieces);

/// What a piece must not exceed: bytes(piece, begin, end) of the blocks [begin, end) as piece `piece` (earlier stages hold more
/// micro-batches), at most `limit`.
struct MemoryLimit {
  std::function<double(int piece, int begin, int end)> bytes;
  double limit = 0;
};
/// The same among the cuts that fit. @throws BadRequest also when none does
std::vector<int> cut_evenly(std::span<double const> cost_of_block, int pieces, MemoryLimit const& memory);

/// Pieces of the given numbers of blocks: {2, 2, 4}. @throws BadRequest unless there is one number for each piece, and they add up
std::vector<int> cut_by_counts(std::vector<int> const& counts, int blocks, int pieces);

/// A new piece begins at each named block. @throws BadRequest for a name that is unknown, repeated, out of order or the first
/// block's, and for other than pieces-1 names
std::vector<int> cut_at(std::vector<std::string> const& names, std::vector<std::string> const& block_names, int pieces);

}  // namespace shardmark
