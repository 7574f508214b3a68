#pragma once
// Ids are types: two integers of different meaning never swap unseen.

#include <compare>
#include <cstdint>

namespace shardmark {

template <class Tag>
struct Id {
  std::int32_t v = -1;
  constexpr auto operator<=>(Id const&) const = default;
  constexpr bool valid() const { return v >= 0; }
};

using BlockId = Id<struct BlockTag>;  // a block of the model, numbered from the input
using UnitId = Id<struct UnitTag>;    // a flat segment of parameters: atom of bucket, shard, gather, version
using ParamId = Id<struct ParamTag>;
using LaneId = Id<struct LaneTag>;      // what one pipeline position does, in order
using ChunkId = Id<struct ChunkTag>;    // coarse plan: a pipeline chunk; refined plan: one block
using MicroId = Id<struct MicroTag>;    // ordinal since the run began: asynchronous lanes cross batches
using Version = Id<struct VersionTag>;  // updates applied to a unit
using Token = Id<struct TokenTag>;      // one posting of a lane
using BucketId = Id<struct BucketTag>;  // gradient segments that are reduced together

}  // namespace shardmark
