#include "model/batch_norm.hpp"

#include "model/deferred.hpp"
#include "model/layers.hpp"
#include "model/pieces.hpp"

namespace shardmark {
namespace {

/// Slots behind the first.
enum Slot : std::size_t { slot_x, slot_moments, slot_mean, slot_rstd, slot_sums };

View row(View const& sums, std::int64_t r) { return reshape(slice(sums, 0, r, r + 1), {sums.shape[1]}); }

}  // namespace

RunningUpdate running_update(View const& moments, RunningBuffers const& running, ParameterStore const& store) {
  return {moments, store.buffer(running.mean), store.buffer(running.variance), store.buffer(running.batches), batch_norm_momentum};
}

Tensor BatchStatistics::forward(Tensor x, Context& context, Stash& stash) {
  if (context.pass != Pass::evaluate) {
    Tensor const moments = context.arena.make(DType::f64, {1 + 2 * x.view.shape[1]}, Book::workspace, context.stream);
    context.run(BatchMoments{x.view, moments.view});
    context.pieces.put(moments, context);
    stash.save(parts_.first_slot + slot_x, x, Until::input);
  }
  return x;
}

Tensor BatchNormalise::forward(Tensor x, Context& context, Stash& stash) {
  std::size_t const first = parts_.first_slot;
  std::int64_t const width = x.view.shape[1];
  DType const type = accumulator(x.view.dtype);
  Tensor mean = context.make(type, {width}), rstd = context.make(type, {width}), y = rows_by(context, x, width);
  auto& store = context.store;
  if (context.pass == Pass::evaluate) {
    context.run(Copy{store.buffer(parts_.running.mean), mean.view});
    context.run(InverseDeviation{store.buffer(parts_.running.variance), rstd.view, batch_norm_epsilon});
  } else {
    Tensor const pieces = context.pieces.all(context);
    Tensor moments = context.make(DType::f64, {1 + 2 * width});
    context.run(MergeMoments{pieces.view, moments.view, mean.view, rstd.view, batch_norm_epsilon});
    move_running(moments, context);
    stash.save(first + slot_moments, moments, Until::input);
    stash.save(first + slot_mean, mean, Until::input);
    stash.save(first + slot_rstd, rstd, Until::input);
  }
  context.run(BatchNorm{x.view, mean.view, rstd.view, store.weight(parts_.gamma, context.version),
                        store.weight(parts_.beta, context.version), y.view});
  return y;
}

void BatchNormalise::move_running(Tensor const& moments, Context& context) const {
  if (context.running == Running::update)
    context.run(running_update(moments.view, parts_.running, context.store));
  else if (context.running == Running::defer)
    context.deferred->put(parts_.running, moments, context);
}

Tensor BatchNormalise::backward(Tensor dy, Context& context, Stash& stash, Wanted wanted) {
  std::size_t const first = parts_.first_slot;
  if (wants_input(wanted)) {
    Tensor sums = context.make(accumulator(dy.view.dtype), {2, dy.view.shape[1]});
    context.run(BatchNormWeight{dy.view, stash[first + slot_x].view, stash[first + slot_mean].view, stash[first + slot_rstd].view,
                                row(sums.view, 0), row(sums.view, 1)});
    context.pieces.put(with_view(sums, reshape(sums.view, {sums.view.elements()})), context);
    stash.save(first + slot_sums, sums, Until::weight);
  }
  if (wants_weight(wanted)) weight_gradient(stash[first + slot_sums].view, context);
  return dy;
}

void BatchNormalise::weight_gradient(View const& sums, Context& context) const {
  auto& store = context.store;
  auto const add = [&](View const& sum, ParamId param) {
    View const gradient = store.gradient(param, 1, 0);
    if (store.gradient_write(param, 0) == Write::overwrite) return context.run(Copy{sum, gradient});
    std::array<View, 2> const in{gradient, sum};
    context.run(SumTree{in, gradient});
  };
  add(row(sums, 0), parts_.gamma);
  add(row(sums, 1), parts_.beta);
}

Tensor BatchStatistics::backward(Tensor dy, Context& context, Stash& stash, Wanted wanted) {
  if (!wants_input(wanted)) return {};
  std::size_t const first = parts_.first_slot;
  std::int64_t const width = dy.view.shape[1];
  Tensor const pieces = context.pieces.all(context);
  Tensor const sums = context.make(pieces.view.dtype, {2, width});
  context.run(ColumnSum{pieces.view, reshape(sums.view, {2 * width})});
  Tensor dx = rows_by(context, dy, width);
  context.run(BatchNormInput{dy.view, stash[first + slot_x].view, context.store.weight(parts_.gamma, context.version),
                             stash[first + slot_mean].view, stash[first + slot_rstd].view, row(sums.view, 0), row(sums.view, 1),
                             stash[first + slot_moments].view, dx.view});
  return dx;
}

}  // namespace shardmark
