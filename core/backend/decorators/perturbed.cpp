#include "backend/decorators/perturbed.hpp"

#include <cmath>
#include <optional>

#include "backend/decorators/dense.hpp"
#include "backend/op_access.hpp"
#include "base/random.hpp"

namespace shardmark {
namespace {

/// Two independent signs for each element; one Philox block serves 64 elements.
class Signs {
 public:
  Signs(Randoms const& words, std::uint32_t lane) : words_(words), lane_(lane) {}
  /// Ascending indices.
  void to(std::int64_t element) {
    if (element % 64 == 0) block_ = words_.block(std::uint64_t(element / 64), lane_);
    std::int64_t const in_block = element % 64;
    bits_ = block_[std::size_t(in_block / 16)] >> (2 * (in_block % 16));
  }
  double first() const { return (bits_ & 1) != 0 ? 1 : -1; }
  double second() const { return (bits_ & 2) != 0 ? 1 : -1; }

 private:
  Randoms words_;
  std::uint32_t lane_;
  std::array<std::uint32_t, 4> block_{};
  std::uint32_t bits_ = 0;
};

bool is_updated(Op const& op, View const& output) {
  bool updated = false;
  each_view(op, [&](View const& view, Access access) { updated = updated || (access == Access::update && view.data == output.data); });
  return updated;
}

}  // namespace

void PerturbedBackend::run(Stream& stream, Op const& op) {
  if (auto const* matmul = std::get_if<Matmul>(&op); matmul != nullptr && matmul->epilogue == Epilogue::bias_gelu)
    run_in_parts(stream, *matmul);
  else
    run_whole(stream, op);
}

void PerturbedBackend::run_in_parts(Stream& stream, Matmul const& op) {
  validate(op);
  mark_touched(stream, op);
  Dense scratch;
  Matmul product = op;
  product.epilogue = Epilogue::bias;
  product.aux = {};
  if (op.aux) {
    product.c = op.aux;
  } else {
    scratch = Dense{op.c.shape[0], op.c.shape[1]};
    product.c = scratch.view();
  }
  run_whole(stream, product);
  run_whole(stream, Gelu{product.c, op.c});
}

void PerturbedBackend::run_whole(Stream& stream, Op const& op) {
  validate(op);
  std::vector<OutputRounding> const outputs = rounding_of(op, inner(), stream);
  Bench bench(inner(), stream);
  std::vector<std::optional<Dense>> before(outputs.size());
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (is_updated(op, outputs[i].output)) before[i] = bench.load(outputs[i].output);
  inner().run(stream, op);
  for (std::size_t i = 0; i < outputs.size(); ++i) move(stream, outputs[i], before[i] ? &before[i]->values() : nullptr, std::uint32_t(i));
  ++operations_;
}

void PerturbedBackend::move(Stream& stream, OutputRounding const& output, std::vector<double> const* before, std::uint32_t lane) {
  Bench bench(inner(), stream);
  Dense y = bench.load(output.output);
  double const sums = std::sqrt(output.terms) * by_.accumulate;
  double const store = output.stored == StoredAs::storage ? by_.store : output.stored == StoredAs::accumulator ? by_.accumulate : 0;
  Signs signs(Randoms(by_.seed, Purpose::perturbation, operations_), lane);
  for (std::int64_t i = 0; i < y.elements(); ++i) {
    signs.to(i);
    double const contribution = before == nullptr ? y[i] : y[i] - (*before)[std::size_t(i)];
    y[i] += signs.first() * store * std::abs(contribution) + signs.second() * sums * output.absolute[std::size_t(i)];
  }
  bench.store(y, output.output);
}

}  // namespace shardmark
