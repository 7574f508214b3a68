// Evaluation: forward only, block by block through all stages.

#include "run/program.hpp"

namespace shardmark {

std::array<double, 3> Program::evaluate(HostBatch const& batch) {
  expect(boundaries_.size() == 0 && stashes_.open_count() == 0, "evaluation needs a drained program");
  broadcast_buffers();
  MicroBatch const live = upload(batch, MicroId{std::int32_t(micro_base_)});
  auto const& lane_of = parts_.schedule.lane_of_chunk;
  auto const elsewhere = [&](std::int32_t block) {
    return block >= 0 && std::size_t(block) < lane_of.size() && lane_of[std::size_t(block)] != parts_.lane;
  };
  Tensor x = live.input;
  // Blocks ascend on every lane, so each receive meets a send that comes before it.
  for (ChunkId id : blocks_) {
    Block const& b = block(id);
    if (elsewhere(id.v - 1)) {
      x = boundary_tensor(id, live.rows);
      cross(Direction::receive, id, x);
    }
    bool const cut = store_.config().shards.cut_weights();
    if (cut) gather_units(b.reads);
    Stash nothing(0, Keep::nothing);
    Context c = context(live, store_.latest(b.reads.front()), Pass::evaluate);
    x = b.body->forward(std::move(x), c, nothing);
    if (b.merged != nullptr) x = b.merged->forward(std::move(x), c, nothing);
    for (UnitId unit : b.reads)
      if (cut) store_.drop_gathered(unit);
    if (elsewhere(id.v + 1)) cross(Direction::send, ChunkId{id.v + 1}, x);
  }
  compute_->synchronize();
  double const* tally = live.tally.view.as<double>();
  std::array<double, 3> const out{tally[0], tally[1], tally[2]};
  parts_.ops.run(*compute_, Fill{tallies_.view, 0});
  return out;
}

/// The activation in front of block `edge`, to or from the lane on the other side.
void Program::cross(Direction direction, ChunkId edge, Tensor const& tensor) {
  int const peer = parts_.schedule.lane_of_chunk[std::size_t(direction == Direction::send ? edge.v : edge.v - 1)];
  Posting const crossing{.edge = edge};
  messages_.clear();
  messages_.push_back({direction, peer, channel_of(crossing), tensor});
  parts_.mesh.over(axes(Axis::pipeline)).post(*compute_, messages_).wait(*compute_);
  messages_.clear();
}

}  // namespace shardmark
