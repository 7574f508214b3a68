#include "comm/mpi/communicator.hpp"

#include <algorithm>

#include "comm/mpi/check.hpp"

namespace shardmark::mpi {

MpiCommunicator::MpiCommunicator(std::shared_ptr<Home> home, Handle group)
    : EngineGroup(home->engine(), group.rank(), group.size()),
      home_(std::move(home)),
      messages_(Handle::duplicate(group.get())),
      collectives_(std::move(group)),
      pending_(pool()),
      queue_(pool()),
      rounds_(collectives_.get(), rank(), size(), home_->tuning().round_bytes, home_->tuning().message_bytes, pool()) {}

MpiCommunicator::~MpiCommunicator() {
  for (Pending& pending : pending_) pending.transfers.drop();
  rounds_.drop();
  if (!home_->aborted()) return;
  messages_.keep_context();
  collectives_.keep_context();
}

Request MpiCommunicator::post(Stream& producer, std::span<Message const> group) {
  validate(*this, group);
  auto posted = begin(group.empty() ? 0 : 1);
  if (group.empty()) return Request(std::move(posted));
  producer.synchronize();
  Transfers& transfers = pending_.emplace_back(posted.get(), Transfers(pool())).transfers;
  std::size_t const chunk = home_->tuning().message_bytes;
  // Receives first: a message that finds its receive needs no buffer on the way.
  for (Direction direction : {Direction::receive, Direction::send}) {
    for (Message const& m : group) {
      if (m.direction != direction) continue;
      posted->keep(m.data);
      View const& v = m.data.view;
      if (direction == Direction::receive)
        transfers.receive(v.data, v.bytes(), m.peer, m.channel, messages_.get(), chunk);
      else
        transfers.send(v.data, v.bytes(), m.peer, m.channel, messages_.get(), chunk);
    }
  }
  return Request(std::move(posted));
}

Request MpiCommunicator::post(Stream& producer, Exchange const& exchange) {
  validate(*this, exchange);
  auto posted = begin(1);
  producer.synchronize();
  posted->keep(exchange.send);
  posted->keep(exchange.recv);
  Call const call = describe(exchange);
  bool const sums = exchange.what == Collective::all_reduce || exchange.what == Collective::reduce_scatter;
  int const tag = next_tag();
  if (exchange.reduction == Reduction::vendor && vendor_can(call)) {
    start_vendor(call, pending_.emplace_back(posted.get(), Transfers(pool())).transfers.collective());
  } else if (sums || (exchange.what == Collective::all_to_all && call.in_place)) {
    queue_.push_back({posted.get(), {exchange.what, call.dtype, call.elements, call.send, call.recv, tag}});
    advance();  // its first round leaves now
  } else {
    copy_own_piece(call);
    start_moves(call, pending_.emplace_back(posted.get(), Transfers(pool())).transfers, tag);
  }
  return Request(std::move(posted));
}

int MpiCommunicator::next_tag() {
  // Tags may be as few as 2^15. Collectives that share one again are far apart and start in the same order everywhere.
  constexpr int tasks = 4096;
  sequence_ = (sequence_ + 1) % tasks;
  return sequence_ * tags_per_task;
}

bool MpiCommunicator::advance() {
  if (home_->aborted()) return false;
  bool moved = false;
  try {
    for (auto it = pending_.begin(); it != pending_.end();) {
      if (it->transfers.done()) {
        it->owner->piece_done();
        it = pending_.erase(it);
        moved = true;
      } else {
        ++it;
      }
    }
    if (!queue_.empty()) {
      if (!rounds_.busy()) rounds_.begin(queue_.front().task);
      moved |= rounds_.advance();
      if (!rounds_.busy()) {
        queue_.front().owner->piece_done();
        queue_.pop_front();
        moved = true;
      }
    }
  } catch (RankFailure const& failure) {
    abort(failure.what());
    throw;
  }
  return moved;
}

void MpiCommunicator::throw_if_aborted() {
  if (home_->aborted()) throw GroupAborted(home_->abort_reason());
}

std::unique_ptr<Communicator> MpiCommunicator::split(std::span<int const> colours) {
  expect(int(colours.size()) == size(), "split: one colour for each rank");
  int const mine = colours[std::size_t(rank())];
  MPI_Comm made = MPI_COMM_NULL;
  check(MPI_Comm_split(collectives_.get(), mine < 0 ? MPI_UNDEFINED : mine, rank(), &made));
  if (made == MPI_COMM_NULL) return nullptr;
  Handle group(made);
  check(MPI_Comm_set_errhandler(made, MPI_ERRORS_RETURN));
  return std::make_unique<MpiCommunicator>(home_, std::move(group));
}

}  // namespace shardmark::mpi
