#include "comm/decorators/recording.hpp"

#include <algorithm>
#include <numeric>

#include "comm/slices.hpp"

namespace shardmark {
namespace {

/// The members of a split's group that `me` is in, in order; positions in the old group.
std::vector<int> group_of(std::span<int const> colours, int me) {
  std::vector<int> members;
  for (int r = 0; r < int(colours.size()); ++r)
    if (colours[std::size_t(r)] == colours[std::size_t(me)]) members.push_back(r);
  return members;
}

std::vector<int> counting(int n) {
  std::vector<int> all(static_cast<std::size_t>(n));
  std::iota(all.begin(), all.end(), 0);
  return all;
}

/// Counts; what becomes of a post is up to the derived classes. Knows its members' ranks in the world.
class Counting : public Communicator {
 public:
  Counting(Traffic& traffic, std::vector<int> world_ranks) : traffic_(traffic), world_ranks_(std::move(world_ranks)) {}
  Request post(Stream& producer, std::span<Message const> group) final {
    validate(*this, group);
    for (Message const& message : group) traffic_.add(message, world_ranks_[std::size_t(message.peer)]);
    return start(producer, group);
  }
  Request post(Stream& producer, Exchange const& exchange) final {
    validate(*this, exchange);
    traffic_.add(*this, exchange);
    return start(producer, exchange);
  }

 protected:
  virtual Request start(Stream& producer, std::span<Message const> group) = 0;
  virtual Request start(Stream& producer, Exchange const& exchange) = 0;
  Traffic& traffic() const { return traffic_; }
  std::vector<int> world_ranks_of(std::vector<int> const& members) const {
    std::vector<int> out;
    for (int member : members) out.push_back(world_ranks_[std::size_t(member)]);
    return out;
  }

 private:
  Traffic& traffic_;
  std::vector<int> world_ranks_;
};

class Recording final : public Counting {
 public:
  Recording(Communicator& inner, Traffic& traffic, std::vector<int> world_ranks)
      : Counting(traffic, std::move(world_ranks)), inner_(inner) {}
  Recording(std::unique_ptr<Communicator> inner, Traffic& traffic, std::vector<int> world_ranks)
      : Counting(traffic, std::move(world_ranks)), owned_(std::move(inner)), inner_(*owned_) {}
  int rank() const override { return inner_.rank(); }
  int size() const override { return inner_.size(); }
  void progress() override { inner_.progress(); }
  int outstanding() const override { return inner_.outstanding(); }
  void abort(std::string_view reason) noexcept override { inner_.abort(reason); }
  std::unique_ptr<Communicator> split(std::span<int const> colours) override {
    auto group = inner_.split(colours);
    if (group == nullptr) return nullptr;
    return std::make_unique<Recording>(std::move(group), traffic(), world_ranks_of(group_of(colours, rank())));
  }
  std::optional<Region> symmetric(std::size_t bytes) override { return inner_.symmetric(bytes); }
  std::string_view name() const override { return inner_.name(); }

 private:
  Request start(Stream& producer, std::span<Message const> group) override { return inner_.post(producer, group); }
  Request start(Stream& producer, Exchange const& exchange) override { return inner_.post(producer, exchange); }
  std::unique_ptr<Communicator> owned_;
  Communicator& inner_;
};

/// Complete from the start; keeps its tensors until it is waited for, as the real ones do, because memory is one of the things that a dry
/// run counts.
class DryRequest final : public RequestState {
 public:
  DryRequest(std::vector<Storage> kept, int& outstanding) : kept_(std::move(kept)), outstanding_(outstanding) { ++outstanding_; }
  ~DryRequest() override { --outstanding_; }
  bool poll() override { return true; }
  void order(Stream&) override {}

 private:
  std::vector<Storage> kept_;
  int& outstanding_;
};

class DryRun final : public Counting {
 public:
  DryRun(int rank, Traffic& traffic, std::vector<int> world_ranks)
      : Counting(traffic, world_ranks), rank_(rank), size_(int(world_ranks.size())) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  int outstanding() const override { return outstanding_; }
  void abort(std::string_view) noexcept override {}
  std::unique_ptr<Communicator> split(std::span<int const> colours) override {
    expect(int(colours.size()) == size_, "split: one colour for each rank");
    if (colours[std::size_t(rank_)] < 0) return nullptr;
    auto const members = group_of(colours, rank_);
    auto const new_rank = int(std::find(members.begin(), members.end(), rank_) - members.begin());
    return std::make_unique<DryRun>(new_rank, traffic(), world_ranks_of(members));
  }
  std::optional<Region> symmetric(std::size_t) override { return std::nullopt; }
  std::string_view name() const override { return "dry"; }

 private:
  Request start(Stream&, std::span<Message const> group) override {
    std::vector<Storage> kept;
    for (Message const& message : group) kept.push_back(message.data.storage);
    return Request(std::make_shared<DryRequest>(std::move(kept), outstanding_));
  }
  Request start(Stream&, Exchange const& exchange) override {
    return Request(std::make_shared<DryRequest>(std::vector<Storage>{exchange.send.storage, exchange.recv.storage}, outstanding_));
  }
  int rank_, size_, outstanding_ = 0;
};

}  // namespace

std::int64_t least_sent_bytes(Collective what, std::int64_t piece_bytes, int rank, int members, int root) {
  if (members == 1) return 0;
  switch (what) {
    case Collective::broadcast:
      return (rank + 1) % members == root ? 0 : piece_bytes;
    case Collective::all_reduce: {
      // What this rank adds up for the others goes to them; the rest it sends to be added up.
      std::int64_t const slice = piece_of(piece_bytes, members, rank).size();
      return (piece_bytes - slice) + (members - 1) * slice;
    }
    case Collective::reduce_scatter:
    case Collective::all_gather:
    case Collective::all_to_all:
      return (members - 1) * piece_bytes;
    case Collective::gather:
      return rank == root ? 0 : piece_bytes;
    case Collective::scatter:
      return rank == root ? (members - 1) * piece_bytes : 0;
  }
  return 0;
}

std::int64_t least_received_bytes(Collective what, std::int64_t piece_bytes, int rank, int members, int root) {
  if (members == 1) return 0;
  switch (what) {
    case Collective::broadcast:
    case Collective::scatter:
      return rank == root ? 0 : piece_bytes;
    case Collective::gather:
      return rank == root ? (members - 1) * piece_bytes : 0;
    case Collective::all_reduce:
    case Collective::reduce_scatter:
    case Collective::all_gather:
    case Collective::all_to_all:
      return least_sent_bytes(what, piece_bytes, rank, members, root);  // as much as it sends
  }
  return 0;
}

void Traffic::add(Communicator const& group, Exchange const& exchange) {
  int const n = group.size(), me = group.rank();
  PieceCounts const pieces = piece_counts(exchange.what, n, me, exchange.root);
  View const& any = pieces.recv > 0 ? exchange.recv.view : exchange.send.view;
  std::int64_t const piece = any.elements() / (pieces.recv > 0 ? pieces.recv : pieces.send);
  auto const w = std::int64_t(width(any.dtype));
  Count& count = collectives_[{exchange.what, exchange.purpose, n, exchange.axes}];
  count.calls += 1;
  count.bytes += std::max(pieces.send, pieces.recv) * piece * w;
  // Slices are cut between elements.
  count.sent_bytes += least_sent_bytes(exchange.what, piece, me, n, exchange.root) * w;
  count.received_bytes += least_received_bytes(exchange.what, piece, me, n, exchange.root) * w;
}

void Traffic::add(Message const& message, int world_peer) {
  auto const bytes = std::int64_t(message.data.view.bytes());
  Count& count = messages_[{message.direction, world_peer, message.channel}];
  count.calls += 1;
  count.bytes += bytes;
  if (message.direction == Direction::send) count.sent_bytes += bytes;
  if (message.direction == Direction::receive) count.received_bytes += bytes;
}

void Traffic::reset() {
  collectives_.clear();
  messages_.clear();
}

namespace {

void accumulate(Traffic::Count& sum, Traffic::Count const& more) {
  sum.calls += more.calls;
  sum.bytes += more.bytes;
  sum.sent_bytes += more.sent_bytes;
  sum.received_bytes += more.received_bytes;
}

}  // namespace

Traffic::Count Traffic::total(Collective what) const {
  Count sum;
  for (auto const& [key, count] : collectives_)
    if (key.what == what) accumulate(sum, count);
  return sum;
}

Traffic::Count Traffic::total(Direction direction) const {
  Count sum;
  for (auto const& [key, count] : messages_)
    if (key.direction == direction) accumulate(sum, count);
  return sum;
}

std::unique_ptr<Communicator> make_recording(Communicator& inner, Traffic& traffic) {
  return std::make_unique<Recording>(inner, traffic, counting(inner.size()));
}

std::unique_ptr<Communicator> make_dry_run(int rank, int ranks, Traffic& traffic) {
  expect(ranks >= 1 && rank >= 0 && rank < ranks, "a dry run is one rank of several");
  return std::make_unique<DryRun>(rank, traffic, counting(ranks));
}

}  // namespace shardmark
