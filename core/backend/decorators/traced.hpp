#pragma once
// Traced: one span per operation, written into memory of the caller's, so that tracing allocates nothing.
// For backends whose work completes inside run(); a device's spans come from its events.

#include <span>

#include "backend/decorators/decorator.hpp"

namespace shardmark {

struct OpSpan {
  std::string_view name;
  unsigned stream = 0;
  double begin_seconds = 0;  // on the steady clock
  double end_seconds = 0;
  double flops = 0;
  double bytes = 0;  // read and written if every view moved once
};

class TracedBackend final : public Decorator {
 public:
  /// @param room where spans are written; spans beyond it are counted in dropped(). Outlives the backend.
  TracedBackend(Backend& inner, std::span<OpSpan> room) : Decorator(inner), room_(room) {}
  void run(Stream& stream, Op const& op) override;

  std::span<OpSpan const> spans() const { return room_.first(used_); }
  std::uint64_t dropped() const { return dropped_; }
  void restart() { used_ = dropped_ = 0; }

 private:
  std::span<OpSpan> room_;
  std::size_t used_ = 0;
  std::uint64_t dropped_ = 0;
};

}  // namespace shardmark
