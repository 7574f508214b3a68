// Postings: messages between lanes, reductions over replicas, exchanges between the holders of a tied weight.

#include <chrono>
#include <iterator>

#include "base/mutant.hpp"
#include "run/pipeline_mutant.hpp"
#include "run/program.hpp"

namespace shardmark {

namespace {

/// Fault "reversed_sends": the activation of a window's first micro-batch waits here for that of the second, and goes out behind it.
std::vector<Message>& held_back() {
  thread_local std::vector<Message> held;
  return held;
}

}  // namespace

int Program::channel_of(Posting const& posting) const {
  int const channel = posting.edge.v * 2 + (posting.gradient ? 1 : 0);
  if (posting.transfer != Transfer::send) return channel;
  if (pipeline_mutant(parts_.schedule, "tags_of_activation_and_gradient_swapped")) return channel ^ 1;
  if (pipeline_mutant(parts_.schedule, "tags_of_boundaries_swapped")) return channel ^ 4;
  return channel;
}

void Program::post(Token token, std::int64_t repetition) {
  auto const group = postings_of(lane_, token);
  invariant(!group.empty(), "a token without postings");
  bool const collective = group.front().transfer == Transfer::collective;
  requests_.add(token, collective ? post_collective(group.front()) : post_messages(group, repetition));
}

Tensor Program::boundary_tensor(ChunkId edge, std::int64_t rows) {
  // What block edge - 1 puts out for `rows` samples: leading dimensions become rows of a matrix.
  auto const& sample = block(ChunkId{edge.v - 1}).boundary;
  std::int64_t leading = rows;
  for (std::size_t d = 0; d + 1 < sample.size(); ++d) leading *= sample[d];
  return parts_.arena.make(parts_.model.dtype, {leading, sample.back()}, Book::activations, *compute_);
}

Request Program::post_messages(std::span<Posting const> group, std::int64_t repetition) {
  messages_.clear();
  for (Posting const& p : group) {
    MicroId const id{std::int32_t(p.micro.v + micro_base_ + repetition * parts_.schedule.micros_per_window)};
    bool const send = p.transfer == Transfer::send;
    AtEdge const what = p.gradient ? AtEdge::gradient : AtEdge::activation;
    Tensor data = send ? boundaries_.take(p.edge, id, what) : boundary_tensor(p.edge, micro(id).batch.rows);
    if (!send) boundaries_.put(p.edge, id, what, data);
    messages_.push_back({send ? Direction::send : Direction::receive, p.peer, channel_of(p), std::move(data)});
    if (mutants_built && send && !p.gradient) reverse_sends(id);
  }
  Request request = parts_.mesh.over(axes(Axis::pipeline)).post(*compute_, messages_);
  if (pipeline_mutant(parts_.schedule, "send_buffer_reused"))
    for (Message const& message : messages_)
      if (message.direction == Direction::send) parts_.ops.run(*compute_, Fill{message.data.view, 0});
  messages_.clear();
  return request;
}

/// The last of messages_ is the activation of `micro`.
void Program::reverse_sends(MicroId micro) {
  if (!pipeline_mutant(parts_.schedule, "reversed_sends")) return;
  auto const move_all = [](std::vector<Message>& from, std::vector<Message>& to) {
    std::move(from.begin(), from.end(), std::back_inserter(to));
    from.clear();
  };
  if (leaf_of(micro) == 0) move_all(messages_, held_back());
  if (leaf_of(micro) == 1) move_all(held_back(), messages_);
}

Request Program::post_collective(Posting const& posting) {
  if (posting.group == decision_group) return post_part();
  if (!posting.group.empty()) return post_tied(posting);
  if (posting.what == Collective::gather) return post_to_root(posting);
  return posting.unit.valid() ? post_gather(posting) : post_sum(posting);
}

/// Sums of gradients over replicas: on all of them, or a piece on each.
Request Program::post_sum(Posting const& posting) {
  Bucket const& bucket = parts_.schedule.buckets[std::size_t(parts_.lane)][std::size_t(posting.bucket.v)];
  if (mutant("skip_reduction") && posting.bucket.v == 0) return {};
  Communicator& replicas = parts_.mesh.over(posting.axes);
  Exchange sum{.what = posting.what, .send = {}, .recv = {}, .reduction = parts_.reduction, .purpose = "gradients"};
  if (posting.what == Collective::reduce_scatter) {
    Gradients::Scatter scatter = store_.gradients().scatter(bucket.segments.front());
    sum.send = std::move(scatter.whole);
    sum.recv = std::move(scatter.piece);
  } else {
    sum.send = sum.recv = store_.gradients().range(bucket.segments.front(), bucket.segments.back());
  }
  ++reductions_;
  if (mutant("reduce_twice")) replicas.post(*compute_, sum).wait(*compute_);
  return replicas.post(*compute_, sum);
}

/// The latest weights of a unit, of which each replica has updated or keeps a piece.
Request Program::post_gather(Posting const& posting) {
  if (parts_.schedule.sharing == Sharing::root) return post_from_root(posting.unit, posting.axes);
  ParameterStore::Gather gather = store_.gather(posting.unit, *compute_);
  if (mutant("weights_not_gathered") && parts_.schedule.sharing != Sharing::parameters) return {};
  Communicator& replicas = parts_.mesh.over(posting.axes);
  Exchange const whole{.what = Collective::all_gather, .send = gather.piece, .recv = gather.whole, .purpose = "weights"};
  if (mutant("weights_gathered_twice")) replicas.post(*compute_, whole).wait(*compute_);
  return replicas.post(*compute_, whole);
}

/// At once: outside of a schedule.
void Program::gather_units(std::vector<UnitId> const& units) {
  for (UnitId unit : units)
    post_gather({.transfer = Transfer::collective, .axes = parts_.schedule.reduced_over, .unit = unit}).wait(*compute_);
}

/// Every holder gets every slot; tie() adds them in the order of the slots, which is that of the holders.
Request Program::post_tied(Posting const& posting) {
  UnitSpec const& spec = parts_.model.spec[posting.unit];
  Communicator& holders = parts_.mesh.named(posting.group);
  expect(holders.size() == spec.slots, "each holder of a tied unit has one of its slots");
  Tensor all;
  if (under_way_) {
    std::int64_t const update = under_way_->offer(posting.unit);
    store_.turn_to(pipeline_mutant(parts_.schedule, "tied_slot_of_the_update_before") && update > 0 ? update - 1 : update);
    all = under_way_->slots(posting.unit, update);
  } else {
    all = parts_.arena.make(accumulator(parts_.model.dtype), {holders.size(), spec.elements}, Book::communication, *compute_);
  }
  Segment const mine = store_.gradients().summed(posting.unit);
  Tensor local = store_.gradients().range(mine, mine);
  local.view = slice(local.view, 0, 0, spec.elements);
  tied_.emplace_back(posting.unit, all);
  if (pipeline_mutant(parts_.schedule, "tied_gradient_not_exchanged")) {
    parts_.ops.run(*compute_, Fill{all.view, 0});
    parts_.ops.run(*compute_, Copy{local.view, reshape(slice(all.view, 0, mine.slot, mine.slot + 1), {spec.elements})});
    return {};
  }
  return holders.post(*compute_, Exchange{.what = Collective::all_gather, .send = local, .recv = all, .purpose = "tied gradients"});
}

/// Losses and norms of an update whose gradients are complete here, for its decision at a later moment.
Request Program::post_part() {
  std::int64_t const update = under_way_->give();
  store_.turn_to(update);
  reduce_tally();
  take_norms();
  leave_tied_copies_out();
  Tensor const& part = under_way_->part(update);
  std::int64_t const norms = norms_.view.elements();
  parts_.ops.run(*compute_, Copy{norms_.view, slice(part.view, 0, 0, norms)});
  parts_.ops.run(*compute_, Copy{totals_.view, slice(part.view, 0, norms, part.view.elements())});
  return parts_.mesh.named(decision_group)
      .post(*compute_, Exchange{.what = Collective::all_reduce, .send = part, .recv = part, .purpose = "decision"});
}

void Program::wait(Token token) {
  auto const before = std::chrono::steady_clock::now();
  requests_.wait(token, *compute_);
  waiting_seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - before).count();
  sum_at_root(token);
  if (mutants_built) update_received(token);
}

}  // namespace shardmark
