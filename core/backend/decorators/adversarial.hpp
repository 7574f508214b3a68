#pragma once
// Adversarial streams: host streams that queue their work and run it in a random order, of those that events alone allow.
// A missing wait, or memory given back too early, then shows as wrong values in an ordinary test without a GPU.
//
// Queues run on synchronize(), on done() and at random moments while work is submitted. Views are copied when work is submitted;
// the bytes behind them must stay, as on a device. reserve() fills memory with NaN, so what was never written shows.

#include <deque>
#include <vector>

#include "backend/decorators/decorator.hpp"
#include "base/random.hpp"

namespace shardmark {

class AdversarialStream;

class AdversarialBackend final : public Decorator {
 public:
  /// @param inner completes its work inside run(). Outlives this backend, as this does its streams.
  AdversarialBackend(Backend& inner, std::uint64_t seed) : Decorator(inner), dice_(seed, Purpose::order, 0) {}
  void run(Stream& stream, Op const& op) override;
  std::unique_ptr<Stream> stream() override;
  Region reserve(std::size_t bytes, Place place) override;

 private:
  friend class AdversarialStream;
  /// Executes the head of one stream's queue, chosen at random among those that may go on. False when there is none.
  bool step();
  /// Executes a few steps, or none.
  void stir();
  std::uint64_t throw_dice(std::uint64_t sides) { return dice_.below(sides, throws_++); }
  AdversarialStream& own(Stream& stream) const;

  Randoms dice_;
  std::uint64_t throws_ = 0;
  std::vector<AdversarialStream*> streams_;
  std::vector<AdversarialStream*> ready_;  // keeps its capacity
};

std::unique_ptr<Backend> make_adversarial_backend(Backend& inner, std::uint64_t seed);

}  // namespace shardmark
