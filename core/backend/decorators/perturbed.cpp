#include "backend/decorators/perturbed.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

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
    if (std::int64_t const at = element / 64; at != at_) block_ = words_.block(std::uint64_t(at_ = at), lane_);
    std::int64_t const in_block = element % 64;
    bits_ = block_[std::size_t(in_block / 16)] >> (2 * (in_block % 16));
  }
  double first() const { return (bits_ & 1) != 0 ? 1 : -1; }
  double second() const { return (bits_ & 2) != 0 ? 1 : -1; }

 private:
  Randoms words_;
  std::uint32_t lane_;
  std::int64_t at_ = -1;
  std::array<std::uint32_t, 4> block_{};
  std::uint32_t bits_ = 0;
};

constexpr std::uint64_t cast_stream = ~std::uint64_t{0};  // of signs; operations count up from 0

bool kept_as(View const& view, Book book) { return view.region != nullptr && view.region->book == book && unit_roundoff(view.dtype) > 0; }
bool is_update(Op const& op) { return std::holds_alternative<SgdUpdate>(op) || std::holds_alternative<AdamWUpdate>(op); }
/// Data on their way into the type that the model computes in.
bool casts_data(Op const& op) { return std::holds_alternative<Copy>(op) && kept_as(std::get<Copy>(op).to, Book::data); }

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

void PerturbedBackend::run_whole(Stream& stream, Op const& given) {
  validate(given);
  Op op = given;
  std::vector<Dense> weights;
  if (by_.cast > 0 && !is_update(op))
    each_view(op, [&](View& view, Access access) {
      if (access == Access::read && kept_as(view, Book::parameters)) view = weights.emplace_back(cast_weight(stream, view)).view();
    });
  std::vector<OutputRounding> outputs = rounding_of(op, inner(), stream);
  if (by_.cast > 0 && casts_data(op)) outputs = {{std::get<Copy>(op).to, {}, 0, StoredAs::cast}};
  Bench bench(inner(), stream);
  std::vector<std::optional<Dense>> before(outputs.size());
  for (std::size_t i = 0; i < outputs.size(); ++i)
    if (is_updated(op, outputs[i].output)) before[i] = bench.load(outputs[i].output);
  inner().run(stream, op);
  for (std::size_t i = 0; i < outputs.size(); ++i) move(stream, outputs[i], before[i] ? &before[i]->values() : nullptr, std::uint32_t(i));
  ++operations_;
}

/// A weight as operations see it. Its signs go by its place in the memory of its unit, so that all uses see the same.
Dense PerturbedBackend::cast_weight(Stream& stream, View const& weight) {
  expect(weight.contiguous() && weight.dtype == DType::f64, "weights of a perturbed run lie in one piece, in fp64");
  auto at = std::find(weights_.begin(), weights_.end(), weight.region->data);
  if (at == weights_.end()) at = weights_.insert(at, weight.region->data);
  Dense out = Bench(inner(), stream).load(weight);
  Signs signs(Randoms(by_.seed, Purpose::perturbation, cast_stream), std::uint32_t(at - weights_.begin()));
  std::int64_t const first = (weight.data - weight.region->data) / std::int64_t(sizeof(double));
  for (std::int64_t i = 0; i < out.elements(); ++i) {
    signs.to(first + i);
    out[i] += signs.first() * by_.cast * std::abs(out[i]);
  }
  return out;
}

void PerturbedBackend::move(Stream& stream, OutputRounding const& output, std::vector<double> const* before, std::uint32_t lane) {
  Bench bench(inner(), stream);
  Dense y = bench.load(output.output);
  double const sums = std::sqrt(output.terms) * by_.accumulate;
  double const store = [&] {
    switch (output.stored) {
      case StoredAs::storage:
        return by_.store;
      case StoredAs::accumulator:
        return by_.accumulate;
      case StoredAs::cast:
        return by_.cast;
      case StoredAs::exact:
        break;
    }
    return 0.0;
  }();
  Signs signs(Randoms(by_.seed, Purpose::perturbation, operations_), lane);
  for (std::int64_t i = 0; i < y.elements(); ++i) {
    signs.to(i);
    double const contribution = before == nullptr ? y[i] : y[i] - (*before)[std::size_t(i)];
    y[i] += signs.first() * store * std::abs(contribution);
    if (sums > 0) y[i] += signs.second() * sums * output.absolute[std::size_t(i)];
  }
  bench.store(y, output.output);
}

}  // namespace shardmark
