// ZeRO (Rajbhandari et al., "ZeRO: Memory Optimizations Toward Training Trillion Parameter Models", SC 2020): data parallelism in which
// each of n ranks keeps a piece of what ddp keeps n times. What a block needs whole is gathered, and given back.
//
//   one rank, M=1, two blocks; r: reduce-scatter of a block's gradients, g: all-gather of its weights, u: update of the own piece
//   stage 1  compute | F0 F1 b1 b0       u0 u1           a piece of the optimizer's state
//            network |          r1 r0       g0 g1        r once an update, whatever M
//   stage 2  compute | F0 F1 b1 b0       u0 u1           and of the sums of gradients
//            network |          r1 r0       g0 g1        r at every micro-batch, ranks first
//   stage 3  compute | F0 F1 b1 b0       u0 u1           and of the weights
//            network |g0 g1    g0 r1 r0                  g0: given back after its forward, gathered again for its backward

#include "strategies/zero/zero.hpp"

#include "schedule/sharing_forms.hpp"

namespace shardmark {
namespace {

class Zero final : public Strategy {
 public:
  std::string name() const override { return "zero"; }
  std::vector<std::string> offers() const override { return {"stage"}; }

  std::optional<Refusal> refuse(Options const&, int) const override { return {}; }  // any number of ranks, more than elements too

  MeshShape mesh(Options const&, int ranks) const override { return {.data = ranks}; }

  /// The algorithm: what ddp does; sums and weights are whole only where they must be.
  Schedule plan(Options const& options, int) const override { return plan_sequential("zero", options.micros); }
  Axes reduced_over(int) const override { return axes(Axis::data); }
  Sharing sharing(Options const& options) const override {
    return options.stage == 1 ? Sharing::optimizer : options.stage == 2 ? Sharing::gradients : Sharing::parameters;
  }

  Prediction predict(Options const& options, std::vector<BlockShape> const& blocks, int ranks) const override {
    SharingForms const forms = sharing_forms(sharing(options), blocks, ranks, options.micros);
    Prediction out;
    out.reductions = forms.reductions;
    out.reduced_elements = forms.reduced;
    out.wire_elements = double(SharingForms::sent(forms.reduced, ranks));
    bool const once = options.stage == 1;
    out.traffic = {form(options, ranks, Collective::reduce_scatter, "gradients", forms.reductions, forms.reduced,
                        width(accumulator(options.dtype)), once ? "(n-1)/n P" : "m (n-1)/n P"),
                   form(options, ranks, Collective::all_gather, "weights", forms.gathers, forms.gathered, width(options.dtype),
                        options.stage == 3 ? "(n-1)/n (2m P - m P_last - (m-1) P_first)" : "(n-1)/n P")};
    out.state = model_state(options, forms);
    return out;
  }

 private:
  /// @param calls, elements  of an update
  static TrafficForm form(Options const& options, int ranks, Collective what, char const* purpose, std::int64_t calls,
                          std::int64_t elements, std::size_t element_bytes, char const* formula) {
    return {.axes = axes(Axis::data),
            .what = what,
            .purpose = purpose,
            .members = ranks,
            .calls = double(calls) / options.micros,
            .elements_per_micro = double(elements) / options.micros,
            .element_bytes = element_bytes,
            .formula = formula};
  }
};

}  // namespace

std::unique_ptr<Strategy> make_zero() { return std::make_unique<Zero>(); }

}  // namespace shardmark
