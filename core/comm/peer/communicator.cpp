#include "comm/peer/communicator.hpp"

#include <algorithm>
#include <vector>

namespace shardmark::peer {

PeerCommunicator::PeerCommunicator(std::shared_ptr<Home> home, int rank, std::string_view name)
    : PeerCommunicator(home, Board(home->control().world_board(), home->control().ranks()), std::nullopt, rank, name) {}

PeerCommunicator::PeerCommunicator(std::shared_ptr<Home> home, std::uint32_t entry, int rank, std::string_view name)
    : PeerCommunicator(home, home->control().board(entry), entry, rank, name) {}

PeerCommunicator::PeerCommunicator(std::shared_ptr<Home> home, Board board, std::optional<std::uint32_t> entry, int rank,
                                   std::string_view name)
    : EngineGroup(home->engine(), rank, board.members()),
      home_(std::move(home)),
      board_(board),
      entry_(entry),
      name_(name),
      messages_(board, home_->space(), rank, pool()),
      collectives_(board, home_->space(), rank, pool()) {}

PeerCommunicator::~PeerCommunicator() {
  if (entry_) home_->control().leave_board(*entry_);
}

Request PeerCommunicator::post(Stream& producer, std::span<Message const> group) {
  validate(*this, group);
  auto posted = begin(int(group.size()));
  producer.synchronize();
  for (Message const& message : group) {
    posted->keep(message.data);
    messages_.post(*posted, message);
  }
  return Request(std::move(posted));
}

Request PeerCommunicator::post(Stream& producer, Exchange const& exchange) {
  validate(*this, exchange);
  auto posted = begin(1);
  producer.synchronize();
  posted->keep(exchange.send);
  posted->keep(exchange.recv);
  collectives_.post(posted.get(), exchange);
  return Request(std::move(posted));
}

bool PeerCommunicator::advance() {
  Home::Inside const inside(*home_);
  if (home_->aborted()) return false;
  try {
    bool const messages = messages_.advance();
    bool const collectives = collectives_.advance();
    return messages || collectives;
  } catch (RankFailure const& failure) {
    abort(failure.what());
    throw;
  }
}

void PeerCommunicator::throw_if_aborted() {
  if (home_->aborted()) throw GroupAborted(home_->abort_reason());
}

void PeerCommunicator::abandon() noexcept {
  abort("a rank failed while it had requests outstanding");
  home_->quiesce();
}

void PeerCommunicator::wait_for_all() {
  std::int64_t const nothing = 0;
  Exchange empty{Collective::all_reduce, {}, {}};
  empty.send.view = empty.recv.view = view_at(nullptr, nullptr, DType::u8, Shape{&nothing, 1});
  collectives_.post(nullptr, empty);
  engine()->moved();
  while (collectives_.in_flight()) {
    if (engine()->advance()) {
      engine()->moved();
    } else {
      throw_if_aborted();
      engine()->idle();
    }
  }
}

std::unique_ptr<Communicator> PeerCommunicator::split(std::span<int const> colours) {
  expect(int(colours.size()) == size(), "split: one colour for each rank");
  int const mine = colours[std::size_t(rank())];
  auto const same = [&](int colour) { return colour == mine; };
  int const leader = int(std::find_if(colours.begin(), colours.end(), same) - colours.begin());
  int const members = int(std::count_if(colours.begin(), colours.end(), same));
  if (mine >= 0 && leader == rank()) board_.of(rank()).child = home_->control().make_board(members);
  wait_for_all();
  std::uint32_t const entry = board_.of(leader).child;
  wait_for_all();
  if (mine < 0) return nullptr;
  int const new_rank = int(std::count_if(colours.begin(), colours.begin() + rank(), same));
  return std::make_unique<PeerCommunicator>(home_, entry, new_rank, name_);
}

std::optional<Region> PeerCommunicator::symmetric(std::size_t bytes) {
  return Region{home_->take_window(bytes), bytes, Place::node_shared, Book::communication};
}

}  // namespace shardmark::peer
