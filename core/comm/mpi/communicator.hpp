#pragma once
// The MPI communicator. Messages are MPI's; collectives are MPI's own (Reduction::vendor) or ours over point-to-point (fixed tree). What
// MPI can't do is ours in both: sums of bf16 (they are kept in fp32), a reduce-scatter in place, counts beyond an int.

#include <list>
#include <memory>

#include "comm/mpi/home.hpp"
#include "comm/mpi/rounds.hpp"

namespace shardmark::mpi {

class MpiCommunicator final : public EngineGroup {
 public:
  /// Collective over `group`, which this object then owns.
  MpiCommunicator(std::shared_ptr<Home> home, Handle group);
  ~MpiCommunicator() override;

  Request post(Stream& producer, std::span<Message const> group) override;
  Request post(Stream& producer, Exchange const& exchange) override;
  void abort(std::string_view reason) noexcept override { home_->abort(reason); }
  std::unique_ptr<Communicator> split(std::span<int const> colours) override;
  std::optional<Region> symmetric(std::size_t) override { return std::nullopt; }
  std::string_view name() const override { return "mpi"; }
  bool advance() override;
  /// Bytes that fixed-tree sums need beside the tensors; taken at the first one.
  std::size_t scratch_bytes() const { return rounds_.scratch_bytes(); }

 private:
  struct Pending {
    Posted* owner;
    Transfers transfers;
  };
  struct Queued {
    Posted* owner;
    RoundTask task;
  };
  /// A collective's tensors without their tensors: what both paths need.
  struct Call {
    Exchange const& exchange;
    PieceCounts pieces;
    std::byte *send, *recv;
    DType dtype;
    std::int64_t elements;  // of one piece
    bool in_place;
  };
  Call describe(Exchange const& exchange) const;
  bool vendor_can(Call const& call) const;
  void start_vendor(Call const& call, MPI_Request* request);
  void start_moves(Call const& call, Transfers& transfers, int tag);
  void copy_own_piece(Call const& call);
  int next_tag();
  void throw_if_aborted() override;
  void abandon() noexcept override { abort("a rank failed while it had requests outstanding"); }

  std::shared_ptr<Home> home_;
  Handle messages_, collectives_;  // separate contexts: tags of one never meet those of the other
  std::pmr::list<Pending> pending_;
  std::pmr::list<Queued> queue_;  // through rounds, one after the other
  Rounds rounds_;
  int sequence_ = 0;
};

}  // namespace shardmark::mpi
