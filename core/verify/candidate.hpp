#pragma once
// One run of the candidate under observation: its first step is compared with the envelope while it runs.

#include <map>

#include "comm/decorators/recording.hpp"
#include "verify/envelope.hpp"
#include "verify/finding.hpp"
#include "verify/own_gradient.hpp"

namespace shardmark {

/// Compares pieces with the envelope of one type.
class Compare final : public Sink {
 public:
  Compare(Envelope const& envelope, DType type, Comparison& out) : envelope_(envelope), type_(type), out_(out) {}
  void take(Piece const& piece) override;

 private:
  Envelope const& envelope_;
  DType type_;
  Comparison& out_;
};

/// Keeps this rank's sums as they were before their reduction, to recognise one that never happened.
class PartialSums final : public Hook {
 public:
  PartialSums(Catalogue const& catalogue, Comparison& out) : catalogue_(catalogue), out_(out) {}
  void before(Program& program, Action const& action, std::int64_t window) override;

 private:
  void keep(Program& program, Token token);
  void recognise(Program& program);

  Catalogue const& catalogue_;
  Comparison& out_;
  std::map<Segment, std::vector<std::byte>> kept_;
};

/// Which samples of the first batch this rank read.
class SampleLedger final : public Hook {
 public:
  /// @param updates  that the batch makes
  SampleLedger(Sampler const& sampler, int updates);
  void read(Program& program, HostBatch const& batch) override;
  /// How often each of the batch's samples was read, and behind them how often any other was.
  std::vector<double> const& times() const { return times_; }

 private:
  std::int64_t updates_;
  std::vector<std::int64_t> ids_;  // of the batch, ascending
  std::vector<double> times_;
};

struct CandidateParts {
  std::string part;  // name of the part of the proof
  Job const& job;
  DType dtype;
  std::int64_t steps;
  Backend& ops;
  Communicator& world;
  Catalogue const& catalogue;
  Envelope const& envelope;
  Backend& optimizer;  // fp64, for the own-gradient rule
  std::vector<std::unique_ptr<Hook>> faults;
  std::function<void()> const& beat;
};

class Candidate {
 public:
  /// @param parts what it refers to outlives this
  /// Runs `steps` steps. Collective.
  explicit Candidate(CandidateParts parts);
  Candidate(Candidate const&) = delete;

  Comparison const& comparison() const { return comparison_; }
  Rig& rig() { return *rig_; }
  std::int64_t steps() const { return parts_.steps; }
  Traffic const& traffic() const { return traffic_; }
  SampleLedger const& samples() const { return samples_; }
  /// Hash of the arena's calls in each step.
  std::vector<std::uint64_t> const& sequences() const { return sequences_; }
  /// Requests that were posted and not completed, at the end.
  int outstanding() const { return world_->outstanding(); }

 private:
  CandidateParts parts_;
  Traffic traffic_;
  std::unique_ptr<Communicator> world_;
  Comparison comparison_;
  Compare compare_;
  Capture capture_;
  PartialSums partial_;
  OwnGradientRule own_;
  SampleLedger samples_;
  BeatHook beat_;
  std::unique_ptr<Rig> rig_;
  std::vector<std::uint64_t> sequences_;
};

}  // namespace shardmark
