// Every pass of a training step but the matmul, at the sizes of a gpt with hidden 512, 8 heads, 256 positions, vocabulary 8192, batch 4, in
// fp32, each with its share of the limit that was measured in the same run.

#include <algorithm>
#include <deque>
#include <vector>

#include "benchmarks/micro/support.hpp"

namespace shardmark::micro {
namespace {

constexpr std::int64_t batch = 4, positions = 256, hidden = 512, heads = 8, vocabulary = 8192;
constexpr std::int64_t rows = batch * positions, wide = 4 * hidden, head_width = hidden / heads;
constexpr std::int64_t weights = 12 * hidden * hidden;  // of a transformer block
constexpr DType f32 = DType::f32, f64 = DType::f64;

View tensor(Backend& b, std::initializer_list<std::int64_t> shape) { return random_tensor(b, f32, shape); }
View matrix(Backend& b) { return tensor(b, {rows, hidden}); }
View by_head(Backend& b) { return tensor(b, {batch, positions, heads, head_width}); }

Op layer_norm(Backend& b) {
  return LayerNorm{matrix(b), tensor(b, {hidden}), tensor(b, {hidden}), matrix(b), tensor(b, {rows}), tensor(b, {rows})};
}
Op layer_norm_input(Backend& b) {
  return LayerNormInput{matrix(b), matrix(b), tensor(b, {hidden}), tensor(b, {rows}), tensor(b, {rows}), matrix(b)};
}
Op layer_norm_weight(Backend& b) {
  return LayerNormWeight{matrix(b), matrix(b), tensor(b, {rows}), tensor(b, {rows}), tensor(b, {hidden}), tensor(b, {hidden})};
}
Op gelu(Backend& b) { return Gelu{tensor(b, {rows, wide}), tensor(b, {rows, wide})}; }
// Neither this nor the loss in place: gradients of gradients of ... would underflow.
Op gelu_input(Backend& b) { return GeluInput{tensor(b, {rows, wide}), tensor(b, {rows, wide}), tensor(b, {rows, wide})}; }
Op relu(Backend& b) { return Relu{tensor(b, {rows, wide}), tensor(b, {rows, wide})}; }
Op attention(Backend& b) { return Attention{by_head(b), by_head(b), by_head(b), by_head(b), tensor(b, {batch, heads, positions}), 0.125}; }
Op attention_input(Backend& b) {
  return AttentionInput{by_head(b), by_head(b), by_head(b), by_head(b), tensor(b, {batch, heads, positions}),
                        by_head(b), by_head(b), by_head(b), by_head(b), 0.125};
}
Op cross_entropy(Backend& b) {
  return CrossEntropy{tensor(b, {rows, vocabulary}), random_integers(b, DType::i32, {rows}, vocabulary), random_tensor(b, f64, {3}),
                      tensor(b, {rows, vocabulary}), 1e-3};
}
Op embedding(Backend& b) {
  return Embedding{random_integers(b, DType::i32, {batch, positions}, vocabulary), tensor(b, {vocabulary, hidden}),
                   tensor(b, {positions, hidden}), tensor(b, {batch, positions, hidden})};
}
Op embedding_weight(Backend& b) {
  return EmbeddingWeight{random_integers(b, DType::i32, {batch, positions}, vocabulary), tensor(b, {batch, positions, hidden}),
                         tensor(b, {vocabulary, hidden})};
}
Op dropout(Backend& b) {
  return Dropout{.x = tensor(b, {batch, positions, hidden}),
                 .y = tensor(b, {batch, positions, hidden}),
                 .samples = random_integers(b, DType::i64, {batch, 2}, 1000),
                 .p = 0.1};
}
Op column_sum(Backend& b) { return ColumnSum{tensor(b, {rows, wide}), tensor(b, {wide})}; }
Op sum_of(Backend& b, std::size_t inputs) {
  static std::deque<std::vector<View>> held;  // a SumTree refers to its inputs
  auto& in = held.emplace_back();
  for (std::size_t i = 0; i < inputs; ++i) in.push_back(tensor(b, {rows, hidden}));
  return SumTree{in, tensor(b, {rows, hidden})};
}
Op residual(Backend& b) { return sum_of(b, 2); }
Op sum_of_seven(Backend& b) { return sum_of(b, 7); }
Op norm_leaves(Backend& b) { return NormLeaves{tensor(b, {weights}), random_tensor(b, f64, {weights / norm_leaf})}; }
Op copy(Backend& b) { return Copy{tensor(b, {weights}), tensor(b, {weights})}; }

View scalars_of_an_update(Backend& b) {
  View const s = random_tensor(b, f64, {scalars});
  std::fill_n(s.as<double>(), scalars, 0.0);
  s.as<double>()[std::size_t(Scalar::learning_rate)] = 1e-4;
  s.as<double>()[std::size_t(Scalar::clip)] = s.as<double>()[std::size_t(Scalar::update)] = 1;
  return s;
}
Op adamw(Backend& b) {
  View const weight = tensor(b, {weights}), second = tensor(b, {weights});
  std::fill_n(second.as<float>(), weights, 1.f);
  return AdamWUpdate{.weight = weight,
                     .gradient = tensor(b, {weights}),
                     .first = tensor(b, {weights}),
                     .second = second,
                     .out = weight,
                     .compute = {},
                     .scalars = scalars_of_an_update(b)};
}
Op sgd(Backend& b) {
  View const weight = tensor(b, {weights});
  return SgdUpdate{.weight = weight,
                   .gradient = tensor(b, {weights}),
                   .momentum = tensor(b, {weights}),
                   .out = weight,
                   .compute = {},
                   .scalars = scalars_of_an_update(b),
                   .factor = 0.9};
}

// Of a table only the rows of this batch move.
constexpr double embedded = 3.0 * rows * hidden * sizeof(float);
constexpr double embedded_weight = (3.0 * rows + vocabulary) * hidden * sizeof(float);

struct Pass {
  char const* name;
  Op (*make)(Backend&);
  double moved = 0;  // bytes; 0: every view once
};
constexpr Pass passes[] = {{"layer_norm", layer_norm},
                           {"layer_norm_input", layer_norm_input},
                           {"layer_norm_weight", layer_norm_weight},
                           {"gelu", gelu},
                           {"gelu_input", gelu_input},
                           {"relu", relu},
                           {"attention", attention},
                           {"attention_input", attention_input},
                           {"cross_entropy", cross_entropy},
                           {"embedding", embedding, embedded},
                           {"embedding_weight", embedding_weight, embedded_weight},
                           {"dropout", dropout},
                           {"column_sum", column_sum},
                           {"sum_tree/2", residual},
                           {"sum_tree/7", sum_of_seven},
                           {"norm_leaves", norm_leaves},
                           {"copy", copy},
                           {"adamw", adamw},
                           {"sgd", sgd}};

void run(benchmark::State& state, Pass const& pass) {
  auto const backend = make_cpu_backend(Determinism::fastest);
  Op const op = pass.make(*backend);
  run_operation(state, *backend, op, pass.moved > 0 ? pass.moved : bytes(op));
}

}  // namespace
}  // namespace shardmark::micro

int main(int argc, char** argv) {
  using namespace shardmark::micro;
  for (Pass const& pass : passes) benchmark::RegisterBenchmark(pass.name, run, pass)->UseManualTime()->Unit(benchmark::kMicrosecond);
  return run_registered(argc, argv);
}
