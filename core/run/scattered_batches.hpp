#pragma once
// The data of the centralised way: rank 0 reads every replica's micro-batches and scatters them, once a global batch.
//
//   what one rank gets: micro-batch 0, 1, ..., each as a head, then room for the largest piece: sample ids, inputs, targets

#include <vector>

#include "run/program.hpp"

namespace shardmark {

/// Bytes of a global batch as one rank gets it: equally many for all, whatever their pieces hold.
struct ScatterLayout {
  ScatterLayout(SampleShape const& samples, std::int64_t global_batch, int replicas, int micros);
  std::int64_t rows;  // room of one micro-batch
  int micros;
  std::size_t input_bytes, target_bytes;  // of one sample
  std::size_t micro_bytes() const;
  std::size_t bytes() const { return micro_bytes() * std::size_t(micros); }

  /// @param at  micro_bytes() of them
  void pack(HostBatch const& batch, std::byte* at) const;
  void unpack(std::byte const* at, HostBatch& batch) const;
};

struct ScatterParts {
  Communicator& replicas;
  ScatterLayout layout;
  /// On rank 0 the micro-batches of all replicas, one replica after the other; elsewhere none. In a dry run this rank's own, in shape.
  BatchSource* source;
  Values values = Values::real;
  Arena& arena;
  Backend& ops;
};

class ScatteredBatches final : public BatchSource {
 public:
  /// What `parts` refers to outlives this.
  explicit ScatteredBatches(ScatterParts parts);
  /// The first of every global batch is collective.
  HostBatch const& next() override;
  /// Time that callers of next() spent in it, since construction.
  double blocked_seconds() const { return blocked_seconds_; }

 private:
  void scatter();
  bool reads() const { return parts_.replicas.rank() == 0; }

  ScatterParts parts_;
  std::unique_ptr<Stream> stream_;
  Tensor all_, mine_;
  std::vector<HostBatch> batches_;  // of this rank
  std::size_t given_;               // of batches_
  double blocked_seconds_ = 0;
};

}  // namespace shardmark
