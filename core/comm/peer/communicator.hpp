#pragma once
// The peer communicator: ranks that share memory. One implementation for threads and for processes.

#include <memory>

#include "comm/peer/collectives.hpp"
#include "comm/peer/home.hpp"
#include "comm/peer/messages.hpp"

namespace shardmark::peer {

class PeerCommunicator final : public EngineGroup {
 public:
  /// A member of the world. `name` is a literal.
  PeerCommunicator(std::shared_ptr<Home> home, int rank, std::string_view name);
  /// A member of the group whose board is at `entry`.
  PeerCommunicator(std::shared_ptr<Home> home, std::uint32_t entry, int rank, std::string_view name);
  ~PeerCommunicator() override;

  Request post(Stream& producer, std::span<Message const> group) override;
  Request post(Stream& producer, Exchange const& exchange) override;
  void abort(std::string_view reason) noexcept override { home_->abort(reason); }
  std::unique_ptr<Communicator> split(std::span<int const> colours) override;
  std::optional<Region> symmetric(std::size_t bytes) override;
  std::string_view name() const override { return name_; }
  bool advance() override;

 private:
  PeerCommunicator(std::shared_ptr<Home> home, Board board, std::optional<std::uint32_t> entry, int rank, std::string_view name);
  void throw_if_aborted() override;
  void abandon() noexcept override;
  void wait_for_all();

  std::shared_ptr<Home> home_;
  Board board_;
  std::optional<std::uint32_t> entry_;
  std::string_view name_;
  Messages messages_;
  Collectives collectives_;
};

}  // namespace shardmark::peer
