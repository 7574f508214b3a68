#pragma once
// What `accumulation verify` compares, on thread ranks without the program.

#include "app/main.hpp"
#include "comm/fabric.hpp"
#include "strategies/accumulation/accumulation.hpp"

namespace shardmark::testing {

/// A gpt on ragged data: tied weights, two buckets, a short third update.
inline Options small_gpt(std::int64_t batch) {
  Options o;
  o.program = "accumulation";
  o.layers = 1;
  o.hidden = 12;
  o.heads = 3;
  o.seq = 5;
  o.vocab = 31;
  o.tied_embeddings = true;
  o.batch = batch;
  o.steps = 4;
  o.lr = 0.1;
  o.bucket_mib = 0.001;
  o.data = "synthetic";
  o.deterministic = true;
  return o;
}

/// Rank 0's.
inline Supplement both_ways(Options const& options, int ranks) {
  auto const strategy = make_accumulation();
  BoardMemory memory = BoardMemory::for_threads(ranks);
  Supplement out;
  run_thread_ranks(ranks, [&](Communicator& world) {
    StatusBoard board(memory.lines(), ranks, world.rank(), "here");
    Supplement mine = strategy->supplement({options, *strategy, world, board});
    if (world.rank() == 0) out = std::move(mine);
  });
  return out;
}

/// Checks that failed, by tensor.
inline std::vector<std::string> failed(Supplement const& supplement) {
  std::vector<std::string> out;
  for (Check const& check : supplement.checks)
    if (check.verdict == Verdict::failed) out.push_back(check.tensor);
  return out;
}

}  // namespace shardmark::testing
