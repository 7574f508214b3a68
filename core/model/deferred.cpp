#include "model/deferred.hpp"

#include <algorithm>

#include "model/batch_norm.hpp"

namespace shardmark {

DeferredStatistics::DeferredStatistics(ParameterStore& store, SumShape leaves, int updates, Backend& ops, Arena& arena, Stream& stream)
    : store_(store), leaves_(leaves), updates_(updates), ops_(ops), stream_(stream) {
  expect(updates >= 1, "at least one update is under way");
  DType const numbers = accumulator(store.config().compute);
  std::int64_t const rows = std::int64_t(updates) * leaves.inner;
  for (RunningBuffers const& running : store.spec().running) {
    BufferSpec const& mean = store.spec()[running.mean];
    if (std::find(store.held().begin(), store.held().end(), mean.unit) == store.held().end()) continue;
    std::int64_t const width = mean.elements();
    auto const make = [&](DType type, std::initializer_list<std::int64_t> shape) {
      return arena.make(type, shape, Book::workspace, stream);
    };
    entries_.push_back({running, make(DType::f64, {rows, 1 + 2 * width}), make(DType::f64, {1 + 2 * width}), make(numbers, {width}),
                        make(numbers, {width}), std::vector<bool>(std::size_t(rows))});
  }
}

void DeferredStatistics::put(RunningBuffers const& running, Tensor const& moments, Context& context) {
  auto const entry = std::find_if(entries_.begin(), entries_.end(), [&](Entry const& e) { return e.running.mean == running.mean; });
  expect(entry != entries_.end(), "this rank doesn't hold those running statistics");
  std::int64_t const id = context.micro.id.v, micro = id % leaves_.leaves(), row = row_of(id / leaves_.leaves(), micro);
  expect(micro < leaves_.inner && !entry->filled[std::size_t(row)], "each micro-batch of the first replica puts its statistics once");
  entry->filled[std::size_t(row)] = true;
  context.run(Copy{moments.view, reshape(slice(entry->rows.view, 0, row, row + 1), {moments.view.elements()})});
}

void DeferredStatistics::move(std::int64_t update) {
  std::int64_t const first = row_of(update, 0), end = first + leaves_.inner;
  for (Entry& entry : entries_) {
    auto const begin = entry.filled.begin();
    expect(std::count(begin + first, begin + end, true) == leaves_.inner, "an update has the statistics of all its micro-batches");
    std::fill(begin + first, begin + end, false);
    ops_.run(stream_,
             MergeMoments{slice(entry.rows.view, 0, first, end), entry.merged.view, entry.mean.view, entry.rstd.view, batch_norm_epsilon});
    ops_.run(stream_, running_update(entry.merged.view, entry.running, store_));
  }
}

}  // namespace shardmark
