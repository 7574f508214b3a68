// Serial training: one rank, the trusted baseline.
//
//   M=3:
//   rank 0 | F0 B0 F1 B1 F2 B2 U

#include "strategies/serial/serial.hpp"

#include <fmt/format.h>

namespace shardmark {
namespace {

class Serial final : public Strategy {
 public:
  std::string name() const override { return "serial"; }

  std::optional<Refusal> refuse(Options const&, int ranks) const override {
    if (ranks != 1)
      return Refusal{fmt::format("serial runs on one rank, not on {}", ranks), "it is the baseline that others are compared with",
                     "start it without mpirun, or choose ddp"};
    return {};
  }

  MeshShape mesh(Options const&, int) const override { return {}; }

  Schedule plan(Options const& options, int) const override { return plan_sequential("serial", options.micros); }

  Prediction predict(Options const&, std::vector<BlockShape> const&, int) const override { return {}; }
};

}  // namespace

std::unique_ptr<Strategy> make_serial() { return std::make_unique<Serial>(); }

}  // namespace shardmark
