// The cpu backend: kernels for the machine's vectors where speed matters, the reference's loops where it doesn't.

#include <deque>

#include "backend/backend.hpp"
#include "backend/cpu/run.hpp"
#include "backend/cpu/run_attention.hpp"
#include "backend/cpu/run_batch_norm.hpp"
#include "backend/cpu/run_columns.hpp"
#include "backend/cpu/run_dropout.hpp"
#include "backend/cpu/run_images.hpp"
#include "backend/cpu/run_sliced_loss.hpp"
#include "backend/cpu/run_update.hpp"

namespace shardmark {
namespace {

using namespace cpu;

/// Runs one operation: finds the element type, then the overload of run() or the reference's loop.
struct Dispatch {
  InstructionSet const& set;
  Determinism determinism;
  Stream& stream;

  template <class F>
  void typed(DType type, F&& f) const {
    type == DType::f64 ? f(set.f64) : type == DType::f32 ? f(set.f32) : f(set.bf16);
  }
  /// Operations whose element type is that of `model`.
  template <class O>
  void hot(View const& model, O const& o) const {
    typed(model.dtype, [&](auto const& kernels) { run(kernels, stream, o); });
  }

  void operator()(Matmul const& o) const {
    if (determinism == Determinism::deterministic) return hot(o.a, o);
    if (o.a.dtype == DType::f32) return run_fastest(set, stream, o);
    if (o.a.dtype != DType::bf16 || !library_has_bfloat16()) return hot(o.a, o);
    o.c.dtype == DType::bf16 ? run_library_bfloat16<bfloat16>(set, stream, o) : run_library_bfloat16<float>(set, stream, o);
  }
  void operator()(ColumnSum const& o) const { hot(o.x, o); }
  void operator()(LayerNorm const& o) const { hot(o.x, o); }
  void operator()(LayerNormInput const& o) const { hot(o.x, o); }
  void operator()(LayerNormWeight const& o) const { hot(o.x, o); }
  void operator()(Gelu const& o) const { hot(o.x, o); }
  void operator()(GeluInput const& o) const { hot(o.x, o); }
  void operator()(Relu const& o) const { hot(o.x, o); }
  void operator()(ReluInput const& o) const { hot(o.y, o); }
  void operator()(Attention const& o) const { hot(o.q, o); }
  void operator()(AttentionInput const& o) const { hot(o.q, o); }
  void operator()(Embedding const& o) const { hot(o.table, o); }
  void operator()(EmbeddingWeight const& o) const { hot(o.dy, o); }
  void operator()(PositionWeight const& o) const { hot(o.dy, o); }
  void operator()(CrossEntropy const& o) const { hot(o.logits, o); }
  void operator()(SoftmaxPart const& o) const { hot(o.logits, o); }
  void operator()(SlicedCrossEntropy const& o) const { hot(o.logits, o); }
  void operator()(NormLeaves const& o) const { hot(o.x, o); }
  void operator()(FlagNonFinite const& o) const { hot(o.x, o); }
  void operator()(SgdUpdate const& o) const { update(o); }
  void operator()(AdamWUpdate const& o) const { update(o); }
  template <class O>
  void update(O const& o) const {
    o.weight.dtype == DType::f64 ? run_update<double>(set, set.update_f64, stream, o) : run_update<float>(set, set.update_f32, stream, o);
  }

  /// Convolutions, whose products are free to choose. bf16 goes the naive way.
  template <class O>
  void unfolded(View const& x, O const& o) const {
    if (x.dtype == DType::f64) return run(Multiply<double>{set.f64, determinism, stream}, o);
    if (x.dtype == DType::f32) return run(Multiply<float>{set.f32, determinism, stream}, o);
    run_bfloat16(stream, o);
  }
  void operator()(Convolution const& o) const { unfolded(o.x, o); }
  void operator()(ConvolutionInput const& o) const { unfolded(o.dy, o); }
  void operator()(ConvolutionWeight const& o) const { unfolded(o.x, o); }
  void operator()(AveragePool const& o) const {
    reference::with_floating(o.x.dtype, [&](auto t) { run<decltype(t)>(stream, o); });
  }
  void operator()(AveragePoolInput const& o) const {
    reference::with_floating(o.dy.dtype, [&](auto t) { run<decltype(t)>(stream, o); });
  }
  void operator()(BatchMoments const& o) const { hot(o.x, o); }
  void operator()(MergeMoments const& o) const { run(o); }
  void operator()(BatchNorm const& o) const { hot(o.x, o); }
  void operator()(BatchNormWeight const& o) const { hot(o.x, o); }
  void operator()(BatchNormInput const& o) const { hot(o.x, o); }
  void operator()(RunningUpdate const& o) const { run(o); }
  void operator()(InverseDeviation const& o) const { run(o); }

  void operator()(Dropout const& o) const {
    typed(o.x.dtype, [&](auto const& kernels) { run_dropout(set, kernels, stream, o); });
  }
  void operator()(SquaredError const& o) const {
    reference::with_floating(o.y.dtype, [&](auto t) { reference::squared_error<decltype(t)>(o); });
  }
  void operator()(TreeTotal const& o) const { reference::tree_total(o); }
  void operator()(Decide const& o) const { reference::decide(o); }

  void operator()(SumTree const& o) const {
    switch (o.out.dtype) {
      case DType::i64:
        return reference::sum_tree<std::int64_t>(o);
      case DType::i32:
        return reference::sum_tree<std::int32_t>(o);
      case DType::u8:
        return reference::sum_tree<std::uint8_t>(o);
      default:
        return hot(o.out, o);
    }
  }
  void operator()(Fill const& o) const {
    switch (o.to.dtype) {
      case DType::i64:
        return run_fill<std::int64_t>(stream, o);
      case DType::i32:
        return run_fill<std::int32_t>(stream, o);
      case DType::u8:
        return run_fill<std::uint8_t>(stream, o);
      default:
        return reference::with_floating(o.to.dtype, [&](auto t) { run_fill<decltype(t)>(stream, o); });
    }
  }
  void operator()(Copy const& o) const {
    switch (o.from.dtype) {
      case DType::i64:
        return run_copy<std::int64_t, std::int64_t>(set, stream, o);
      case DType::i32:
        return run_copy<std::int32_t, std::int32_t>(set, stream, o);
      case DType::u8:
        return run_copy<std::uint8_t, std::uint8_t>(set, stream, o);
      default:
        reference::with_floating(o.from.dtype, [&](auto from) {
          reference::with_floating(o.to.dtype, [&](auto to) { run_copy<decltype(from), decltype(to)>(set, stream, o); });
        });
    }
  }
};

class CpuBackend final : public Backend {
 public:
  CpuBackend(Determinism determinism, std::string const& highest) : set_(choose_instruction_set(highest)), determinism_(determinism) {
    scratch_of_thread();
  }
  void run(Stream& stream, Op const& op) override {
    validate(op);
    mark_touched(stream, op);
    stream.tick();
    std::visit(Dispatch{set_, determinism_, stream}, op);
  }
  std::unique_ptr<Stream> stream() override { return std::make_unique<HostStream>(streams_++); }
  Region reserve(std::size_t bytes, Place place) override {
    Pages const& pages = slabs_.emplace_back(bytes);
    return {pages.data(), pages.bytes(), place};
  }
  std::string name() const override { return "cpu"; }
  std::string instruction_set() const override { return std::string(set_.name); }

 private:
  InstructionSet const& set_;
  Determinism determinism_;
  unsigned streams_ = 0;
  std::deque<Pages> slabs_;
};

}  // namespace

std::unique_ptr<Backend> make_cpu_backend(Determinism determinism, std::string const& highest) {
  return std::make_unique<CpuBackend>(determinism, highest);
}

}  // namespace shardmark
