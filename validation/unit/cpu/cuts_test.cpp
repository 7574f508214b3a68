// Validation rule 12: a pass gives the same bits wherever its range is cut, at any offset in memory.

#include "workbench.hpp"

namespace shardmark {
namespace {

using testing::Workbench;

struct CutsOn : testing::OnInstructionSet {
  /// Runs `op` whole, then on pieces of the views that `cut` names, each in its dimension, and compares every output.
  template <class O>
  void expect_same_when_cut(O const& op, std::initializer_list<std::pair<View O::*, int>> cut, std::string const& what) {
    O twin = op;
    each_output(op, twin, [&](View const& view, View& other) { other = bench.copy(view); });
    run(op);
    auto const [first, first_dim] = *cut.begin();
    std::int64_t const n = (twin.*first).shape[std::size_t(first_dim)];
    std::int64_t begin = 0;
    for (std::int64_t const end : {std::int64_t{1}, std::int64_t{4}, n / 3, n / 2 + 1, n - 1, n}) {
      if (end <= begin) continue;
      O piece = twin;
      for (auto const& [member, dim] : cut)
        if (twin.*member) piece.*member = slice(twin.*member, dim, begin, end);
      run(piece);
      begin = end;
    }
    each_output(op, twin, [&](View const& view, View const& other) {
      testing::expect_same_bits(other, view, what + " " + std::string(name(view.dtype)));
    });
  }
};

TEST_P(CutsOn, Elementwise) {
  for (DType const type : testing::stored)
    for (std::int64_t const n : {5, 16, 77, 300}) {
      View const x = bench.random(type, {n}, -4, 4), dy = bench.random(type, {n});
      expect_same_when_cut(Gelu{x, bench.make(type, {n})}, {{&Gelu::x, 0}, {&Gelu::y, 0}}, "gelu");
      expect_same_when_cut(GeluInput{x, dy, bench.make(type, {n})}, {{&GeluInput::x, 0}, {&GeluInput::dy, 0}, {&GeluInput::dx, 0}},
                           "gelu_input");
      expect_same_when_cut(Relu{x, bench.make(type, {n})}, {{&Relu::x, 0}, {&Relu::y, 0}}, "relu");
      expect_same_when_cut(ReluInput{x, dy, bench.make(type, {n})}, {{&ReluInput::y, 0}, {&ReluInput::dy, 0}, {&ReluInput::dx, 0}},
                           "relu_input");
    }
}

TEST_P(CutsOn, SumTree) {
  for (DType const type : testing::stored) {
    std::vector<View> in;
    for (int i = 0; i < 6; ++i) in.push_back(bench.random(type, {83}));
    View const whole = bench.make(type, {83}), cut = bench.make(type, {83});
    run(SumTree{in, whole});
    for (auto const& [begin, end] : {std::pair{0, 1}, {1, 18}, {18, 50}, {50, 83}}) {
      std::vector<View> part;
      for (View const& v : in) part.push_back(slice(v, 0, begin, end));
      run(SumTree{part, slice(cut, 0, begin, end)});
    }
    testing::expect_same_bits(cut, whole, "sum_tree");
  }
}

TEST_P(CutsOn, Updates) {
  for (DType const type : testing::floats) {
    View const scalars = bench.random(DType::f64, {shardmark::scalars}, 0.5, 0.9);
    scalars.as<double>()[std::size_t(Scalar::skip)] = 0;
    scalars.as<double>()[std::size_t(Scalar::update)] = 3;
    std::int64_t const n = 101;
    SgdUpdate const sgd{.weight = bench.random(type, {n}),
                        .gradient = bench.random(type, {n}),
                        .momentum = bench.random(type, {n}),
                        .out = bench.make(type, {n}),
                        .compute = {},
                        .scalars = scalars,
                        .factor = 0.9};
    expect_same_when_cut(sgd, {{&SgdUpdate::weight, 0}, {&SgdUpdate::gradient, 0}, {&SgdUpdate::momentum, 0}, {&SgdUpdate::out, 0}}, "sgd");
    AdamWUpdate const adamw{.weight = bench.random(type, {n}),
                            .gradient = bench.random(type, {n}),
                            .first = bench.random(type, {n}),
                            .second = bench.random(type, {n}, 0, 1),
                            .out = bench.make(type, {n}),
                            .compute = {},
                            .scalars = scalars};
    expect_same_when_cut(adamw,
                         {{&AdamWUpdate::weight, 0},
                          {&AdamWUpdate::gradient, 0},
                          {&AdamWUpdate::first, 0},
                          {&AdamWUpdate::second, 0},
                          {&AdamWUpdate::out, 0}},
                         "adamw");
  }
}

TEST_P(CutsOn, RowsOfNormalisation) {
  for (DType const type : testing::stored) {
    std::int64_t const rows = 23, n = 70;
    View const x = bench.random(type, {rows, n}), dy = bench.random(type, {rows, n});
    View const gamma = bench.random(type, {n}), beta = bench.random(type, {n});
    DType const sums = accumulator(type);
    LayerNorm const forward{x, gamma, beta, bench.make(type, {rows, n}), bench.make(sums, {rows}), bench.make(sums, {rows})};
    expect_same_when_cut(forward, {{&LayerNorm::x, 0}, {&LayerNorm::y, 0}, {&LayerNorm::mean, 0}, {&LayerNorm::rstd, 0}}, "layer_norm");
    expect_same_when_cut(LayerNormInput{dy, x, gamma, forward.mean, forward.rstd, bench.make(type, {rows, n})},
                         {{&LayerNormInput::x, 0},
                          {&LayerNormInput::dy, 0},
                          {&LayerNormInput::mean, 0},
                          {&LayerNormInput::rstd, 0},
                          {&LayerNormInput::dx, 0}},
                         "layer_norm_input");
  }
}

/// Columns of sums over rows may be cut; their rows may not.
TEST_P(CutsOn, ColumnsOfSums) {
  for (DType const type : testing::stored)
    for (Write const write : {Write::overwrite, Write::accumulate}) {
      std::int64_t const rows = 150, n = 1100;
      DType const sums = accumulator(type);
      View const x = bench.random(type, {rows, n}), dy = bench.random(type, {rows, n});
      expect_same_when_cut(ColumnSum{x, bench.random(sums, {n}), write}, {{&ColumnSum::x, 1}, {&ColumnSum::y, 0}}, "column_sum");
      expect_same_when_cut(
          LayerNormWeight{dy, x, bench.random(sums, {rows}), bench.random(sums, {rows}), bench.random(sums, {n}), bench.random(sums, {n}),
                          write},
          {{&LayerNormWeight::x, 1}, {&LayerNormWeight::dy, 1}, {&LayerNormWeight::dgamma, 0}, {&LayerNormWeight::dbeta, 0}},
          "layer_norm_weight");
    }
}

TEST_P(CutsOn, SamplesAndHeadsOfAttention) {
  for (DType const type : testing::stored) {
    auto fresh = [&] { return bench.random(type, {6, 70, 5, 9}); };
    Attention const forward{fresh(), fresh(), fresh(), fresh(), bench.make(accumulator(type), {6, 5, 70}), 0.3};
    expect_same_when_cut(forward, {{&Attention::q, 0}, {&Attention::k, 0}, {&Attention::v, 0}, {&Attention::y, 0}, {&Attention::lse, 0}},
                         "attention");
    AttentionInput const backward{forward.q, forward.k, forward.v, forward.y, forward.lse, fresh(), fresh(), fresh(), fresh(), 0.3};
    expect_same_when_cut(backward,
                         {{&AttentionInput::q, 0},
                          {&AttentionInput::k, 0},
                          {&AttentionInput::v, 0},
                          {&AttentionInput::y, 0},
                          {&AttentionInput::lse, 0},
                          {&AttentionInput::dy, 0},
                          {&AttentionInput::dq, 0},
                          {&AttentionInput::dk, 0},
                          {&AttentionInput::dv, 0}},
                         "attention_input");
    // Heads: as tensor parallelism cuts them.
    View const y = fresh(), lse = bench.make(accumulator(type), {6, 2, 70});
    auto heads = [](View const& v) { return slice(v, 2, 1, 3); };
    run(Attention{heads(forward.q), heads(forward.k), heads(forward.v), heads(y), lse, 0.3});
    testing::expect_same_bits(heads(y), heads(forward.y), "two heads of attention");
    testing::expect_same_bits(lse, slice(forward.lse, 1, 1, 3), "their log-sum-exp");
  }
}

SHARDMARK_ON_EVERY_INSTRUCTION_SET(CutsOn);

}  // namespace
}  // namespace shardmark
