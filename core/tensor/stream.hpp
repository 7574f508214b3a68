#pragma once
// Streams order work; events order streams. On the CPU work completes at once, on a GPU these are CUDA streams.

#include <cstdint>

namespace shardmark {

class Stream;

/// A point on a stream; a value. On an immediate host stream it is born done.
struct Event {
  Stream* on = nullptr;
  std::uint64_t ticket = 0;
};

class Stream {
 public:
  virtual ~Stream() = default;
  /// Small index of this stream on its backend (0..31): the bit in Region::touched_by.
  virtual unsigned index() const = 0;
  virtual Event record() = 0;
  /// Later work here starts after `event`; never blocks the host.
  virtual void wait(Event event) = 0;
  virtual bool done(Event event) = 0;
  /// The event's time on the device clock, read after the step. Unit: seconds.
  virtual double seconds(Event event) = 0;
  /// Blocks the host until all work submitted so far is complete.
  virtual void synchronize() = 0;
  /// Called by operations between panels (<= 0.5 ms); drives the progress of communication on a host.
  virtual void tick() {}
};

}  // namespace shardmark
