#pragma once
// Updated weights under AdamW have no useful propagated bound: where a gradient is near 0 its sign decides the step. So the fp64
// optimizer gets the candidate's own gradient, and its weights are held to 16 u (|w| + lr), calibrated in validation, "Bounds".

#include "verify/capture.hpp"
#include "verify/finding.hpp"

namespace shardmark {

class OwnGradientRule final : public Hook {
 public:
  /// Writes the findings of updated weights. `ops` runs the fp64 update; all three outlive the hook.
  OwnGradientRule(Catalogue const& catalogue, Backend& ops, Comparison& out)
      : catalogue_(catalogue), ops_(ops), stream_(ops.stream()), out_(out) {}
  void before(Program& program, Action const& action, std::int64_t window) override;
  void after(Program& program, Action const& action, std::int64_t window) override;

 private:
  void expected_update(Program& program, std::int64_t decaying);

  Catalogue const& catalogue_;
  Backend& ops_;
  std::unique_ptr<Stream> stream_;
  Comparison& out_;
  std::vector<double> weight_, gradient_, expected_;  // of the unit that is being updated
};

}  // namespace shardmark
