#include "run/block_profile.hpp"

#include <algorithm>

#include "backend/decorators/meta.hpp"
#include "schedule/recompute.hpp"

namespace shardmark {
namespace {

/// Activations during forwards and backwards, by block. Nothing else is alive: micro-batches come one after the other.
class MemoryOfBlocks final : public Hook {
 public:
  struct Seen {
    std::int64_t begin = 0;                        // alive before
    std::int64_t stays = 0, peak = 0, behind = 0;  // beyond: after it, during it, when the block's next action begins
    double flops = 0;
  };
  explicit MemoryOfBlocks(std::size_t blocks) : forward_(blocks), backward_(blocks) {}

  void before(Program& program, Action const& action, std::int64_t) override {
    if (action.what != Do::forward && action.what != Do::backward) return;
    Ledger& ledger = program.parts().arena.ledger();
    ledger.reset_peaks();
    Seen& seen = of(action);
    seen.begin = ledger.live(Book::activations);
    flops_ = flops(program);
    Seen& forward = forward_.at(std::size_t(action.chunk.v));
    if (action.what == Do::backward) forward.behind = std::max(forward.behind, seen.begin - forward.begin);
  }

  void after(Program& program, Action const& action, std::int64_t) override {
    if (action.what != Do::forward && action.what != Do::backward) return;
    Ledger const& ledger = program.parts().arena.ledger();
    Seen& seen = of(action);
    seen.stays = std::max(seen.stays, ledger.live(Book::activations) - seen.begin);
    seen.peak = std::max(seen.peak, ledger.peak(Book::activations) - seen.begin);
    seen.flops = std::max(seen.flops, flops(program) - flops_);
  }

  Seen const& forward(std::size_t block) const { return forward_[block]; }
  Seen const& backward(std::size_t block) const { return backward_[block]; }

 private:
  Seen& of(Action const& action) { return (action.what == Do::forward ? forward_ : backward_).at(std::size_t(action.chunk.v)); }
  static double flops(Program& program) { return dynamic_cast<MetaBackend&>(program.parts().ops).total().flops; }

  std::vector<Seen> forward_, backward_;
  double flops_ = 0;
};

}  // namespace

std::vector<ChainBlock> profile_blocks(Job const& job) {
  auto const shapes = job.model->shapes();
  auto const blocks = shapes.size();
  Job alone = job;
  alone.mesh = {};
  alone.update = UpdateOf::batch;
  alone.delays.clear();
  Schedule const plain = refine(plan_sequential("serial", job.micros), shapes, {0, int(blocks)});
  alone.schedule = lower(plain, shapes, 0, Overlap::off);
  MemoryOfBlocks stashing(blocks), light(blocks);
  dry_run(alone, 0, &stashing);
  alone.schedule = lower(recompute(plain, recompute_all()), shapes, 0, Overlap::off);
  dry_run(alone, 0, &light);
  std::vector<ChainBlock> out;
  for (std::size_t b = 0; b < blocks; ++b) {
    ChainBlock block;
    block.forward_seconds = stashing.forward(b).flops;
    block.output_bytes = b + 1 < blocks ? light.forward(b).stays : 0;
    block.stash_bytes = stashing.forward(b).stays;
    block.stash_peak = stashing.forward(b).peak;
    block.light_peak = light.forward(b).peak;
    block.gradient_bytes = block.output_bytes;
    block.held_bytes = stashing.forward(b).behind - block.gradient_bytes;
    block.backward_peak = stashing.backward(b).peak;
    out.push_back(block);
  }
  return out;
}

}  // namespace shardmark
