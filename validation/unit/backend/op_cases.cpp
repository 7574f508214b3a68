#include "validation/unit/backend/op_cases.hpp"

#include <fmt/format.h>

namespace shardmark::cases {
namespace {

class Cases {
 public:
  Cases(DType type, DType grid, CaseSize size, std::uint64_t seed) : type_(type), grid_(grid), size_(size), seed_(seed) {}

  void matmuls() {
    for (Transpose ta : {Transpose::no, Transpose::yes})
      for (Transpose tb : {Transpose::no, Transpose::yes})
        for (Write write : {Write::overwrite, Write::accumulate}) matmul(ta, tb, write, Epilogue::none);
    for (Write write : {Write::overwrite, Write::accumulate}) matmul(Transpose::yes, Transpose::no, write, Epilogue::none, Output::sums);
    matmul(Transpose::no, Transpose::yes, Write::overwrite, Epilogue::bias);
    matmul(Transpose::no, Transpose::yes, Write::overwrite, Epilogue::bias, Output::sums);
    matmul(Transpose::no, Transpose::no, Write::overwrite, Epilogue::bias_gelu);
  }

  void sums() {
    for (int n : {1, 2, 3, 5, 8}) {
      CaseMaker make = maker(fmt::format("sum_tree/{}", n));
      for (int i = 0; i < n; ++i) make.inputs().push_back(make.numbers({size_.rows, size_.columns}));
      View const out = make.numbers({size_.rows, size_.columns});
      std::span<View const> const in = make.inputs();
      out_.push_back(make.finish(SumTree{in, out}));
    }
    for (Write write : {Write::overwrite, Write::accumulate}) {
      CaseMaker make = maker(fmt::format("column_sum/{}", int(write)));
      View const x = make.numbers({size_.rows, size_.columns}, size_.padding);
      View const y = make.numbers_as(make.sum_type(), {size_.columns});
      out_.push_back(make.finish(ColumnSum{x, y, write}));
    }
    CaseMaker leaves = maker("norm_leaves");
    std::int64_t const n = size_.rows * size_.columns;
    View const x = leaves.numbers({n});
    View const sums = leaves.zeros_as(DType::f64, {(n + norm_leaf - 1) / norm_leaf});
    out_.push_back(leaves.finish(NormLeaves{x, sums}));
    CaseMaker total = maker("tree_total");
    View const terms = total.numbers_as(DType::f64, {size_.rows});
    View const out = total.zeros_as(DType::f64, {1});
    out_.push_back(total.finish(TreeTotal{terms, out}));
    CaseMaker flag = maker("flag_nonfinite");
    View const numbers = flag.numbers({size_.rows, size_.columns});
    View const raised = flag.zeros_as(DType::f64, {1});
    out_.push_back(flag.finish(FlagNonFinite{numbers, raised}));
  }

  void normalisations() {
    CaseMaker forward = maker("layer_norm");
    auto const f = rows_and_vectors(forward);
    View const y = forward.numbers({size_.rows, size_.columns}, size_.padding);
    out_.push_back(forward.finish(LayerNorm{f.x, f.gamma, f.beta, y, f.mean, f.rstd}));
    CaseMaker input = maker("layer_norm_input");
    auto const b = rows_and_vectors(input);
    View const dy = input.numbers({size_.rows, size_.columns}, size_.padding);
    View const dx = input.numbers({size_.rows, size_.columns});
    out_.push_back(input.finish(LayerNormInput{dy, b.x, b.gamma, b.mean, b.rstd, dx}));
    for (Write write : {Write::overwrite, Write::accumulate}) {
      CaseMaker weight = maker(fmt::format("layer_norm_weight/{}", int(write)));
      auto const w = rows_and_vectors(weight);
      View const g = weight.numbers({size_.rows, size_.columns});
      View const dgamma = weight.numbers_as(weight.sum_type(), {size_.columns});
      View const dbeta = weight.numbers_as(weight.sum_type(), {size_.columns});
      out_.push_back(weight.finish(LayerNormWeight{g, w.x, w.mean, w.rstd, dgamma, dbeta, write}));
    }
  }

  void activations() {
    pair<Gelu>("gelu");
    pair<Relu>("relu");
    triple<GeluInput>("gelu_input", false);
    triple<GeluInput>("gelu_input/in_place", true);
    triple<ReluInput>("relu_input", false);
    for (std::int64_t full : {std::int64_t{0}, 2 * size_.columns + 3}) {
      CaseMaker make = maker(fmt::format("dropout/{}", full == 0 ? "whole" : "shard"));
      View const x = make.numbers({size_.rows, 3, size_.columns}, size_.padding);
      View const y = make.numbers({size_.rows, 3, size_.columns});
      View const samples = make.integers(DType::i64, {size_.rows, 2}, 1000);
      out_.push_back(make.finish(Dropout{x, y, samples, 0.25, seed_, 4, full == 0 ? 0 : size_.columns + 1, full}));
    }
  }

  void attentions() {
    CaseMaker forward = maker("attention");
    CaseSize const& s = size_;
    auto const [q, k, v] = forward.fused_heads();
    View const y = forward.numbers({s.batch, s.length, s.heads, s.width});
    View const lse = forward.numbers_as(forward.sum_type(), {s.batch, s.heads, s.length});
    out_.push_back(forward.finish(Attention{q, k, v, y, lse, scale()}));

    CaseMaker backward = maker("attention_input");
    auto const [bq, bk, bv] = backward.fused_heads();
    View const by = backward.numbers({s.batch, s.length, s.heads, s.width});
    View const blse = backward.numbers_as(backward.sum_type(), {s.batch, s.heads, s.length});
    fill_attention(bq, bk, bv, by, blse);
    View const dy = backward.numbers({s.batch, s.length, s.heads, s.width});
    auto const [dq, dk, dv] = backward.fused_heads();
    out_.push_back(backward.finish(AttentionInput{bq, bk, bv, by, blse, dy, dq, dk, dv, scale()}));
  }

  void embeddings() {
    CaseSize const& s = size_;
    for (bool positions : {false, true}) {
      CaseMaker make = maker(fmt::format("embedding/{}", positions ? "positions" : "tokens"));
      View const ids = make.integers(DType::i32, {s.batch, s.length}, s.vocabulary);
      View const table = make.numbers({s.vocabulary, s.columns}, s.padding);
      View const place = positions ? make.numbers({s.length + 2, s.columns}) : View{};
      View const y = make.numbers({s.batch, s.length, s.columns});
      out_.push_back(make.finish(Embedding{ids, table, place, y}));
    }
    // Rows [3, 3 + vocabulary) of a larger table.
    TableSlice const some{3, s.vocabulary + 8};
    CaseMaker part = maker("embedding/slice");
    View const any = part.integers(DType::i32, {s.batch, s.length}, some.vocabulary);
    View const rows = part.numbers({s.vocabulary, s.columns}, s.padding), places = part.numbers({s.length + 2, s.columns});
    View const sum = part.numbers({s.batch, s.length, s.columns});
    out_.push_back(part.finish(Embedding{any, rows, places, sum, some}));
    CaseMaker own = maker("embedding_weight/slice");
    View const all = own.integers(DType::i32, {s.batch, s.length}, some.vocabulary);
    View const g = own.numbers({s.batch, s.length, s.columns}), drows = own.numbers_as(own.sum_type(), {s.vocabulary, s.columns});
    out_.push_back(own.finish(EmbeddingWeight{all, g, drows, Write::overwrite, some}));
    for (Write write : {Write::overwrite, Write::accumulate}) {
      CaseMaker token = maker(fmt::format("embedding_weight/{}", int(write)));
      View const ids = token.integers(DType::i32, {s.batch, s.length}, s.vocabulary);
      View const dy = token.numbers({s.batch, s.length, s.columns});
      View const dtable = token.numbers_as(token.sum_type(), {s.vocabulary, s.columns});
      out_.push_back(token.finish(EmbeddingWeight{ids, dy, dtable, write}));
      CaseMaker position = maker(fmt::format("position_weight/{}", int(write)));
      View const dp = position.numbers({s.batch, s.length, s.columns}, s.padding);
      View const dpositions = position.numbers_as(position.sum_type(), {s.length + 2, s.columns});
      out_.push_back(position.finish(PositionWeight{dp, dpositions, write}));
    }
  }

  void losses() {
    CaseSize const& s = size_;
    for (bool gradient : {true, false}) {
      CaseMaker make = maker(fmt::format("cross_entropy/{}", gradient ? "train" : "evaluate"));
      View const logits = make.numbers({s.rows, s.vocabulary}, s.padding);
      View const target = make.integers(DType::i32, {s.rows}, s.vocabulary);
      if (s.rows > 2) target.as<std::int32_t>()[1] = -1;
      View const tally = make.zeros_as(DType::f64, {3});
      View const dlogits = gradient ? make.numbers({s.rows, s.vocabulary}) : View{};
      out_.push_back(make.finish(CrossEntropy{logits, target, tally, dlogits, 0.125}));
    }
    sliced_losses();
    CaseMaker make = maker("squared_error");
    View const y = make.numbers({s.rows, s.columns}), target = make.numbers({s.rows, s.columns});
    View const tally = make.zeros_as(DType::f64, {3}), dy = make.numbers({s.rows, s.columns});
    out_.push_back(make.finish(SquaredError{y, target, tally, dy, 0.25}));
  }

  /// The vocabulary in two slices, of which the first is larger.
  void sliced_losses() {
    CaseSize const& s = size_;
    std::int64_t const first = (s.vocabulary + 1) / 2, columns = s.vocabulary - first;
    CaseMaker one = maker("softmax_part");
    View const logits = one.numbers({s.rows, columns}, s.padding);
    View const target = one.integers(DType::i32, {s.rows}, s.vocabulary);
    if (s.rows > 2) target.as<std::int32_t>()[1] = -1;
    View const part = one.numbers_as(one.sum_type(), {s.rows, softmax_part_size});
    out_.push_back(one.finish(SoftmaxPart{logits, target, part, first}));
    for (bool gradient : {true, false}) {
      CaseMaker make = maker(fmt::format("sliced_cross_entropy/{}", gradient ? "train" : "evaluate"));
      View const left = make.numbers({s.rows, first}), right = make.numbers({s.rows, columns}, s.padding);
      View const wanted = make.integers(DType::i32, {s.rows}, s.vocabulary);
      if (s.rows > 2) wanted.as<std::int32_t>()[1] = -1;
      View const parts = make.numbers_as(make.sum_type(), {2, s.rows, softmax_part_size}), tally = make.zeros_as(DType::f64, {3});
      fill_parts(left, right, wanted, parts);
      View const dlogits = gradient ? make.numbers({s.rows, columns}) : View{};
      out_.push_back(make.finish(SlicedCrossEntropy{right, wanted, parts, tally, dlogits, first, 0.125}));
    }
  }

  void memory() {
    CaseMaker fill = maker("fill");
    View const to = fill.numbers({size_.rows, size_.columns}, size_.padding);
    out_.push_back(fill.finish(Fill{to, 1.5}));
    for (DType target : {DType::f64, DType::f32, DType::bf16}) {
      CaseMaker copy = maker(fmt::format("copy/{}", name(target)));
      View const from = copy.numbers({size_.rows, size_.columns}, size_.padding);
      View const cast = copy.numbers_as(target, {size_.rows, size_.columns});
      out_.push_back(copy.finish(Copy{from, cast}));
    }
    CaseMaker flip = maker("copy/transposed");
    View const from = flip.numbers({size_.rows, size_.columns});
    View to_flip = flip.numbers({size_.columns, size_.rows});
    std::swap(to_flip.shape[0], to_flip.shape[1]);
    std::swap(to_flip.stride[0], to_flip.stride[1]);
    out_.push_back(flip.finish(Copy{from, to_flip}));
  }

  void updates() {
    if (type_ == DType::bf16) return;  // weights are updated in the accumulator's type
    CaseMaker decide = maker("decide");
    View const norm = decide.zeros_as(DType::f64, {1}), totals = decide.zeros_as(DType::f64, {4});
    CaseMaker::set(norm, {6.25});
    CaseMaker::set(totals, {12, 8, 3, 0});
    View const values = decide.zeros_as(DType::f64, {scalars});
    out_.push_back(decide.finish(Decide{norm, totals, values, 1.0, 0.01}));
    for (bool skip : {false, true}) {
      CaseMaker sgd = maker(fmt::format("sgd_update/{}", skip ? "skip" : "step"));
      Master const m = master(sgd, skip);
      SgdUpdate step{m.weight, m.gradient, m.state, m.out, m.compute, m.scalars, 0.9, 0.1};
      step.nesterov = true;
      step.decay_from = m.weight.elements() / 3, step.decay_to = m.weight.elements() / 2;
      out_.push_back(sgd.finish(step));
      CaseMaker adam = maker(fmt::format("adamw_update/{}", skip ? "skip" : "step"));
      Master const a = master(adam, skip);
      View const second = adam.numbers({a.weight.elements()});
      std::vector<double> squares = numbers_in(second);
      for (double& v : squares) v = std::abs(v);
      CaseMaker::set(second, squares);
      AdamWUpdate update{a.weight, a.gradient, a.state, second, a.out, a.compute, a.scalars};
      update.decay = 0.1, update.decay_to = a.weight.elements();
      out_.push_back(adam.finish(update));
    }
  }

  std::vector<OpCase> take() { return std::move(out_); }

 private:
  CaseMaker maker(std::string label) const { return {std::move(label), type_, grid_, seed_, size_}; }
  double scale() const { return size_.width == 0 ? 1 : 1 / std::sqrt(double(size_.width)); }

  /// c of the operands' type, or of their accumulator's.
  enum class Output : std::uint8_t { rounded, sums };
  void matmul(Transpose ta, Transpose tb, Write write, Epilogue epilogue, Output output = Output::rounded) {
    CaseMaker make = maker(fmt::format("matmul/{}{}/{}/{}/{}", ta == Transpose::yes ? 't' : 'n', tb == Transpose::yes ? 't' : 'n',
                                       int(write), int(epilogue), int(output)));
    std::int64_t const m = size_.rows, n = size_.columns, k = size_.depth, pad = size_.padding;
    View const a = ta == Transpose::no ? make.numbers({m, k}, pad) : make.numbers({k, m}, pad);
    View const b = tb == Transpose::no ? make.numbers({k, n}, pad) : make.numbers({n, k}, pad);
    View const c = output == Output::rounded ? make.numbers({m, n}, pad) : make.numbers_as(make.sum_type(), {m, n});
    Matmul op{.a = a, .b = b, .c = c, .ta = ta, .tb = tb, .write = write, .epilogue = epilogue, .bias = {}, .aux = {}};
    if (epilogue != Epilogue::none) op.bias = make.numbers({n});
    if (epilogue == Epilogue::bias_gelu) op.aux = make.numbers({m, n});
    out_.push_back(make.finish(op));
  }

  template <class O>
  void pair(std::string label) {
    CaseMaker make = maker(std::move(label));
    View const x = make.numbers({size_.rows, size_.columns}, size_.padding), y = make.numbers({size_.rows, size_.columns});
    out_.push_back(make.finish(O{x, y}));
  }
  template <class O>
  void triple(std::string label, bool in_place) {
    CaseMaker make = maker(std::move(label));
    View const x = make.numbers({size_.rows, size_.columns}), dy = make.numbers({size_.rows, size_.columns}, size_.padding);
    View const dx = in_place ? dy : make.numbers({size_.rows, size_.columns});
    out_.push_back(make.finish(O{x, dy, dx}));
  }

  struct Normalised {
    View x, gamma, beta, mean, rstd;
  };
  /// x with its statistics, computed in fp64 and rounded to fp32, the same for every type.
  Normalised rows_and_vectors(CaseMaker& make) const {
    std::int64_t const rows = size_.rows, n = size_.columns;
    Normalised out{make.numbers({rows, n}, size_.padding), make.numbers({n}), make.numbers({n}), make.numbers_as(make.sum_type(), {rows}),
                   make.numbers_as(make.sum_type(), {rows})};
    std::vector<double> const x = numbers_in(out.x);
    std::vector<double> means, rstds;
    for (std::int64_t r = 0; r < rows; ++r) {
      double mean = 0, squares = 0;
      for (std::int64_t j = 0; j < n; ++j) mean += x[std::size_t(r * n + j)] / double(n);
      for (std::int64_t j = 0; j < n; ++j) squares += std::pow(x[std::size_t(r * n + j)] - mean, 2) / double(n);
      means.push_back(double(float(mean)));
      rstds.push_back(double(float(1 / std::sqrt(squares + 1e-5))));
    }
    CaseMaker::set(out.mean, means);
    CaseMaker::set(out.rstd, rstds);
    return out;
  }

  /// y and lse by the reference in fp64, rounded like other numbers.
  void fill_attention(View const& q, View const& k, View const& v, View const& y, View const& lse) const {
    auto const backend = make_reference_backend();
    HostStream stream(0);
    Bench bench(*backend, stream);
    Dense dq = bench.load(q), dk = bench.load(k), dv = bench.load(v), dy(q.dims()), dlse(lse.dims());
    bench.run(Attention{dq.view(), dk.view(), dv.view(), dy.view(), dlse.view(), scale()});
    for (Dense* d : {&dy, &dlse}) d->apply([](double x) { return double(float(x)); });
    if (grid_ == DType::bf16) dy.apply([](double x) { return double(float(bfloat16(float(x)))); });
    CaseMaker::set(y, dy.values());
    CaseMaker::set(lse, dlse.values());
  }

  /// The parts of two slices by the reference in fp64, rounded like other numbers.
  static void fill_parts(View const& left, View const& right, View const& target, View const& parts) {
    auto const backend = make_reference_backend();
    HostStream stream(0);
    Bench bench(*backend, stream);
    Dense dl = bench.load(left), dr = bench.load(right), both(parts.dims());
    View const rows = both.view();
    bench.run(SoftmaxPart{dl.view(), target, slice(rows, 0, 0, 1), 0});
    bench.run(SoftmaxPart{dr.view(), target, slice(rows, 0, 1, 2), columns_of(left)});
    both.apply([](double x) { return double(float(x)); });
    CaseMaker::set(parts, both.values());
  }

  struct Master {
    View weight, gradient, state, out, compute, scalars;
  };
  Master master(CaseMaker& make, bool skip) const {
    std::int64_t const n = size_.rows * size_.columns;
    Master m{make.numbers({n}),
             make.numbers({n}),
             make.numbers({n}),
             make.numbers({n}),
             make.numbers_as(DType::bf16, {n}),
             make.zeros_as(DType::f64, {scalars})};
    auto set = [&](Scalar which, double value) { m.scalars.as<double>()[std::size_t(which)] = value; };
    set(Scalar::learning_rate, 0.01);
    set(Scalar::clip, 0.75);
    set(Scalar::skip, skip ? 1 : 0);
    set(Scalar::update, 3);
    return m;
  }

  DType type_, grid_;
  CaseSize size_;
  std::uint64_t seed_;
  std::vector<OpCase> out_;
};

}  // namespace

std::vector<OpCase> op_cases(DType type, CaseSize size, std::uint64_t seed, DType grid) {
  Cases cases(type, grid, size, seed);
  cases.matmuls();
  cases.sums();
  cases.normalisations();
  cases.activations();
  cases.attentions();
  cases.embeddings();
  cases.losses();
  cases.memory();
  cases.updates();
  // Updates are left out of some types, so they come last.
  std::vector<OpCase> out = image_cases(type, size, seed, grid);
  for (OpCase& c : cases.take()) out.push_back(std::move(c));
  return out;
}

}  // namespace shardmark::cases
