#pragma once
// One forward and backward of a gpt that is cut over a tensor-parallel group, block by block, without an executor.

#include "backend/reference/rows.hpp"
#include "base/random.hpp"
#include "model/pieces.hpp"
#include "model/tensor_group.hpp"
#include "model/zoo.hpp"
#include "validation/equivalence/core/harness.hpp"

namespace shardmark::testing {

/// What a run made, as numbers: outputs of blocks but the last, input gradients, gradients of parameters by name (one for each use).
struct GptRun {
  std::vector<std::vector<double>> outputs, input_gradients;
  std::vector<std::pair<std::string, std::vector<double>>> gradients;
  std::vector<double> tally;
};

struct GptCase {
  GptConfig config{.layers = 2, .hidden = 24, .heads = 2, .seq = 12, .vocab = 61};
  DType dtype = DType::f64;
  std::int64_t rows = 3;
  int chunks = 1;
  int leaves = 1;  // micro-batches, of the same samples, whose gradients accumulate where they are computed
};

inline std::vector<double> numbers_of(View const& view) {
  std::vector<double> out;
  std::int64_t const n = view.elements();
  reference::with_floating(view.dtype, [&](auto tag) {
    for (std::int64_t i = 0; i < n; ++i) out.push_back(double(view.as<decltype(tag)>()[i]));
  });
  return out;
}

/// The same samples for everyone: ids, targets (one isn't counted), keys of dropout.
inline MicroBatch gpt_batch(GptCase const& c, Arena& arena, Stream& stream) {
  MicroBatch micro;
  micro.rows = c.rows;
  micro.scale = 1 / double(std::max<std::int64_t>(1, c.rows * c.config.seq));
  auto const make = [&](DType type, std::initializer_list<std::int64_t> shape) { return arena.make(type, shape, Book::data, stream); };
  micro.input = make(DType::i32, {c.rows, c.config.seq});
  micro.target = make(DType::i32, {c.rows, c.config.seq});
  micro.samples = make(DType::i64, {c.rows, 2});
  micro.tally = make(DType::f64, {3});
  Randoms const random(5, Purpose::synthetic_data, 1);
  for (std::int64_t i = 0; i < c.rows * c.config.seq; ++i) {
    micro.input.view.as<std::int32_t>()[i] = std::int32_t(random.below(std::uint64_t(c.config.vocab), std::uint64_t(2 * i)));
    micro.target.view.as<std::int32_t>()[i] = std::int32_t(random.below(std::uint64_t(c.config.vocab), std::uint64_t(2 * i + 1)));
  }
  if (c.rows > 0) micro.target.view.as<std::int32_t>()[c.rows * c.config.seq / 2] = -1;
  for (std::int64_t r = 0; r < c.rows; ++r)
    micro.samples.view.as<std::int64_t>()[2 * r] = 7, micro.samples.view.as<std::int64_t>()[2 * r + 1] = 100 + r;
  std::fill_n(micro.tally.view.as<double>(), 3, 0.0);
  return micro;
}

inline GptRun run_gpt(GptCase const& c, TensorPart held, TensorGroup& group, Wanted halves = Wanted::both) {
  Model const model = make_gpt(c.config, c.dtype, 11, InitialStyle::verifying, held);
  auto ops = make_cpu_backend(Determinism::deterministic);
  auto stream = ops->stream();
  Pages pages(64 << 20);
  Ledger ledger;
  Arena arena({pages.data(), pages.bytes(), Place::host, Book::workspace}, ledger);
  arena.watch(*stream);
  int const blocks = int(model.blocks.size());
  std::vector<Segment> const order = model.backward_order(0, blocks);
  SumOrder const loop{.micros = Fold::loop};
  ParameterStore store(model.spec, model.units_of(0, blocks), order, loop, {1, c.leaves}, {.compute = c.dtype}, arena, *ops, *stream);
  initialise(model, store, *ops, *stream);
  MicroBatch const micro = gpt_batch(c, arena, *stream);
  LocalPieces alone(1);
  Context context{.ops = *ops,
                  .stream = *stream,
                  .arena = arena,
                  .store = store,
                  .version = Version{0},
                  .micro = micro,
                  .pieces = alone,
                  .tensor = group};
  GptRun out;
  for (int leaf = 0; leaf < c.leaves; ++leaf) {
    std::vector<Stash> stashes;
    Tensor x = micro.input;
    for (Block const& block : model.blocks) {
      x = block.body->forward(std::move(x), context, stashes.emplace_back(block.slots));
      if (leaf == 0 && &block != &model.blocks.back()) out.outputs.push_back(numbers_of(x.view));
    }
    x = {};
    for (Segment s : order) store.gradients().begin(s, leaf, *stream);
    for (int b = blocks - 1; b >= 0; --b) {
      Layer& body = *model.blocks[std::size_t(b)].body;
      Stash& stash = stashes[std::size_t(b)];
      if (halves == Wanted::both) {
        x = body.backward(std::move(x), context, stash, Wanted::both);
      } else {
        x = body.backward(std::move(x), context, stash, Wanted::input);
        body.backward({}, context, stash, Wanted::weight);
      }
      if (leaf == 0 && b > 0) out.input_gradients.push_back(numbers_of(x.view));
    }
    for (Segment s : order) store.gradients().fold(s, leaf, *stream);
  }
  for (ParamSpec const& param : model.spec.params)
    for (Segment s : order)
      if (s.unit == param.unit)
        out.gradients.emplace_back(param.name,
                                   numbers_of(slice(store.gradients().total(s), 0, param.offset, param.offset + param.elements())));
  out.tally = numbers_of(micro.tally.view);
  return out;
}

inline GptRun run_rank(GptCase const& c, Communicator& world, TokenRows rows, Wanted halves = Wanted::both) {
  RankTensorGroup group(world, Reduction::fixed_tree);
  return run_gpt(c, {world.size(), world.rank(), rows, c.chunks}, group, halves);
}

/// One process with all parts.
inline GptRun run_twin(GptCase const& c, int parts, TokenRows rows) {
  LocalTensorGroup group(parts);
  return run_gpt(c, {parts, parts == 1 ? 0 : TensorPart::all_parts, rows}, group);
}

}  // namespace shardmark::testing
