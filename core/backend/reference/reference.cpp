// The oracle: each operation is the loop that its formula says, in the type of its views.

#include <vector>

#include "backend/backend.hpp"
#include "backend/reference/loops_attention.hpp"
#include "backend/reference/loops_batch_norm.hpp"
#include "backend/reference/loops_embedding.hpp"
#include "backend/reference/loops_images.hpp"
#include "backend/reference/loops_loss.hpp"
#include "backend/reference/loops_matmul.hpp"
#include "backend/reference/loops_memory.hpp"
#include "backend/reference/loops_normalisation.hpp"
#include "backend/reference/loops_sliced_loss.hpp"
#include "backend/reference/loops_update.hpp"

namespace shardmark {
namespace {

using namespace reference;

/// Runs the loop of each operation. A tag object carries the element type.
struct Interpreter {
  Stream& stream;
  std::vector<double>& scratch;  // keeps its capacity between operations

  void operator()(Matmul const& o) {
    with_floating(o.a.dtype, [&](auto t) { with_floating(o.c.dtype, [&](auto c) { multiply<decltype(t), decltype(c)>(o); }); });
  }
  /// c is of the operands' type or of their accumulator's; validate() has refused the rest.
  template <class T, class C>
  void multiply(Matmul const& o) {
    if constexpr (std::is_same_v<T, C> || std::is_same_v<Accumulator<T>, C>) matmul<T, C>(o, [this] { stream.tick(); });
  }

  void operator()(SumTree const& o) {
    switch (o.out.dtype) {
      case DType::i64:
        return sum_tree<std::int64_t>(o);
      case DType::i32:
        return sum_tree<std::int32_t>(o);
      case DType::u8:
        return sum_tree<std::uint8_t>(o);
      default:
        with_floating(o.out.dtype, [&](auto t) { sum_tree<decltype(t)>(o); });
    }
  }

  void operator()(ColumnSum const& o) {
    with_floating(o.x.dtype, [&](auto t) { column_sum<decltype(t)>(o); });
  }
  void operator()(LayerNorm const& o) {
    with_floating(o.x.dtype, [&](auto t) { layer_norm<decltype(t)>(o); });
  }
  void operator()(LayerNormInput const& o) {
    with_floating(o.x.dtype, [&](auto t) { layer_norm_input<decltype(t)>(o); });
  }
  void operator()(LayerNormWeight const& o) {
    with_floating(o.x.dtype, [&](auto t) { layer_norm_weight<decltype(t)>(o); });
  }
  void operator()(Gelu const& o) {
    with_floating(o.x.dtype, [&](auto t) { gelu<decltype(t)>(o); });
  }
  void operator()(GeluInput const& o) {
    with_floating(o.x.dtype, [&](auto t) { gelu_input<decltype(t)>(o); });
  }
  void operator()(Relu const& o) {
    with_floating(o.x.dtype, [&](auto t) { relu<decltype(t)>(o); });
  }
  void operator()(ReluInput const& o) {
    with_floating(o.y.dtype, [&](auto t) { relu_input<decltype(t)>(o); });
  }
  void operator()(Attention const& o) {
    with_floating(o.q.dtype, [&](auto t) { attention<decltype(t)>(o, room<decltype(t)>(attention_scratch(o.q))); });
  }
  void operator()(AttentionInput const& o) {
    with_floating(o.q.dtype, [&](auto t) { attention_input<decltype(t)>(o, room<decltype(t)>(attention_input_scratch(o.q))); });
  }
  void operator()(Embedding const& o) {
    with_floating(o.table.dtype, [&](auto t) { embedding<decltype(t)>(o); });
  }
  void operator()(EmbeddingWeight const& o) {
    with_floating(o.dy.dtype, [&](auto t) { embedding_weight<decltype(t)>(o); });
  }
  void operator()(PositionWeight const& o) {
    with_floating(o.dy.dtype, [&](auto t) { position_weight<decltype(t)>(o); });
  }
  void operator()(Dropout const& o) {
    with_floating(o.x.dtype, [&](auto t) { dropout<decltype(t)>(o); });
  }
  void operator()(CrossEntropy const& o) {
    with_floating(o.logits.dtype, [&](auto t) { cross_entropy<decltype(t)>(o); });
  }
  void operator()(SoftmaxPart const& o) {
    with_floating(o.logits.dtype, [&](auto t) { softmax_part<decltype(t)>(o); });
  }
  void operator()(SlicedCrossEntropy const& o) {
    with_floating(o.logits.dtype, [&](auto t) { sliced_cross_entropy<decltype(t)>(o); });
  }
  void operator()(SquaredError const& o) {
    with_floating(o.y.dtype, [&](auto t) { squared_error<decltype(t)>(o); });
  }
  void operator()(NormLeaves const& o) {
    with_floating(o.x.dtype, [&](auto t) { norm_leaves<decltype(t)>(o); });
  }
  void operator()(TreeTotal const& o) { tree_total(o); }
  void operator()(Decide const& o) { decide(o); }
  void operator()(FlagNonFinite const& o) {
    with_floating(o.x.dtype, [&](auto t) { flag_nonfinite<decltype(t)>(o); });
  }
  void operator()(SgdUpdate const& o) { o.weight.dtype == DType::f64 ? sgd_update<double>(o) : sgd_update<float>(o); }
  void operator()(AdamWUpdate const& o) { o.weight.dtype == DType::f64 ? adamw_update<double>(o) : adamw_update<float>(o); }

  void operator()(Convolution const& o) {
    with_floating(o.x.dtype, [&](auto t) { convolution<decltype(t)>(o, room<decltype(t)>(o.y.shape[3]), [this] { stream.tick(); }); });
  }
  void operator()(ConvolutionInput const& o) {
    std::int64_t const image = o.dx.shape[1] * o.dx.shape[2] * o.dx.shape[3];
    with_floating(o.dy.dtype, [&](auto t) { convolution_input<decltype(t)>(o, room<decltype(t)>(image), [this] { stream.tick(); }); });
  }
  void operator()(ConvolutionWeight const& o) {
    with_floating(o.x.dtype, [&](auto t) { convolution_weight<decltype(t)>(o, [this] { stream.tick(); }); });
  }
  void operator()(AveragePool const& o) {
    with_floating(o.x.dtype, [&](auto t) { average_pool<decltype(t)>(o, room<decltype(t)>(o.x.shape[3])); });
  }
  void operator()(AveragePoolInput const& o) {
    with_floating(o.dy.dtype, [&](auto t) { average_pool_input<decltype(t)>(o); });
  }
  void operator()(BatchMoments const& o) {
    with_floating(o.x.dtype, [&](auto t) { batch_moments<decltype(t)>(o); });
  }
  void operator()(MergeMoments const& o) { o.mean.dtype == DType::f64 ? merge_moments<double>(o) : merge_moments<float>(o); }
  void operator()(BatchNorm const& o) {
    with_floating(o.x.dtype, [&](auto t) { batch_norm<decltype(t)>(o); });
  }
  void operator()(BatchNormWeight const& o) {
    with_floating(o.x.dtype, [&](auto t) { batch_norm_weight<decltype(t)>(o); });
  }
  void operator()(BatchNormInput const& o) {
    with_floating(o.x.dtype, [&](auto t) { batch_norm_input<decltype(t)>(o); });
  }
  void operator()(RunningUpdate const& o) { o.mean.dtype == DType::f64 ? running_update<double>(o) : running_update<float>(o); }
  void operator()(InverseDeviation const& o) { o.rstd.dtype == DType::f64 ? inverse_deviation<double>(o) : inverse_deviation<float>(o); }

  void operator()(Fill const& o) {
    switch (o.to.dtype) {
      case DType::i64:
        return fill<std::int64_t>(o);
      case DType::i32:
        return fill<std::int32_t>(o);
      case DType::u8:
        return fill<std::uint8_t>(o);
      default:
        with_floating(o.to.dtype, [&](auto t) { fill<decltype(t)>(o); });
    }
  }
  void operator()(Copy const& o) {
    switch (o.from.dtype) {
      case DType::i64:
        return copy<std::int64_t, std::int64_t>(o);
      case DType::i32:
        return copy<std::int32_t, std::int32_t>(o);
      case DType::u8:
        return copy<std::uint8_t, std::uint8_t>(o);
      default:
        with_floating(o.from.dtype, [&](auto from) { with_floating(o.to.dtype, [&](auto to) { copy<decltype(from), decltype(to)>(o); }); });
    }
  }

  template <class T>
  std::span<Accumulator<T>> room(std::int64_t elements) {
    if (scratch.size() < std::size_t(elements)) scratch.resize(std::size_t(elements));
    return {reinterpret_cast<Accumulator<T>*>(scratch.data()), std::size_t(elements)};
  }
};

class ReferenceBackend final : public Backend {
 public:
  void run(Stream& stream, Op const& op) override {
    validate(op);
    mark_touched(stream, op);
    stream.tick();
    std::visit(Interpreter{stream, scratch_}, op);
  }
  std::unique_ptr<Stream> stream() override { return std::make_unique<HostStream>(streams_++); }
  Region reserve(std::size_t bytes, Place place) override {
    Pages const& pages = slabs_.emplace_back(bytes);
    return {pages.data(), pages.bytes(), place};
  }
  std::string name() const override { return "reference"; }

 private:
  unsigned streams_ = 0;
  std::vector<double> scratch_;
  std::vector<Pages> slabs_;
};

}  // namespace

std::unique_ptr<Backend> make_reference_backend() { return std::make_unique<ReferenceBackend>(); }

}  // namespace shardmark
