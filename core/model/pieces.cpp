#include "model/pieces.hpp"

#include "base/mutant.hpp"

namespace shardmark {

void LocalPieces::put(Tensor const& mine, Context& context) {
  std::int64_t const n = mine.view.elements();
  if (filled_ == 0) rows_ = context.arena.make(mine.view.dtype, {count_, n}, Book::workspace, context.stream);
  expect(filled_ < count_ && rows_.view.shape[1] == n, "each piece puts its statistics once");
  context.run(Copy{mine.view, reshape(slice(rows_.view, 0, filled_, filled_ + 1), {n})});
  ++filled_;
}

Tensor LocalPieces::all(Context&) {
  expect(filled_ == count_, "statistics are taken when every piece has put its own");
  if (++taken_ < count_) return rows_;
  filled_ = taken_ = 0;
  return std::exchange(rows_, {});
}

void RankPieces::put(Tensor const& mine, Context& context) {
  expect(!request_.outstanding(), "each piece puts its statistics once");
  rows_ = context.arena.make(mine.view.dtype, {group_.size(), mine.view.elements()}, Book::communication, context.stream);
  request_ =
      group_.post(context.stream, Exchange{.what = Collective::all_gather, .send = mine, .recv = rows_, .purpose = "batch statistics"});
}

Tensor RankPieces::all(Context& context) {
  request_.wait(context.stream);
  if (mutant("merge_by_local_count") && rows_.view.dtype == DType::f64 && rows_.view.shape[1] % 2 == 1) {
    auto const count = [&](int r) { return slice(slice(rows_.view, 0, r, r + 1), 1, 0, 1); };
    for (int r = 0; r < group_.size(); ++r)
      if (r != group_.rank()) context.run(Copy{count(group_.rank()), count(r)});
  }
  return std::exchange(rows_, {});
}

}  // namespace shardmark
