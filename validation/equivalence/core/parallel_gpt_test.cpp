// A gpt cut over thread ranks, vocabulary included, with and without sequence parallelism: every output, input gradient and weight gradient
// bit for bit those of one process that adds up as the ranks do, and within rounding those of the whole model.

#include <gtest/gtest.h>

#include "comm/decorators/recording.hpp"
#include "validation/equivalence/core/parallel_gpt.hpp"

namespace shardmark::testing {
namespace {

/// The values of `whole` that a part has.
std::vector<double> of_part(std::vector<double> const& whole, SliceLayout const& place, std::size_t elements) {
  std::vector<double> out;
  for (std::size_t i = 0; i < elements; ++i) out.push_back(whole[std::size_t(place(std::int64_t(i)))]);
  return out;
}

/// Run p of `parts` equal runs.
std::vector<double> run_of(std::vector<double> const& whole, int p, int parts) {
  std::ptrdiff_t const n = std::ptrdiff_t(whole.size()) / parts;
  return {whole.begin() + p * n, whole.begin() + (p + 1) * n};
}

void expect_equal(GptRun const& mine, GptRun const& whole, GptCase const& c, TensorPart held) {
  Model const model = make_gpt(c.config, c.dtype, 11, InitialStyle::verifying, held);
  auto const rows = [&](std::vector<double> const& all) { return held.rows == TokenRows::cut ? run_of(all, held.part, held.parts) : all; };
  ASSERT_EQ(mine.outputs.size(), whole.outputs.size());
  for (std::size_t b = 0; b < mine.outputs.size(); ++b) EXPECT_EQ(mine.outputs[b], rows(whole.outputs[b])) << "output of block " << b;
  for (std::size_t b = 0; b < mine.input_gradients.size(); ++b)
    EXPECT_EQ(mine.input_gradients[b], rows(whole.input_gradients[b])) << "input gradient, " << b << " from the end";
  ASSERT_EQ(mine.gradients.size(), whole.gradients.size());
  for (std::size_t g = 0; g < mine.gradients.size(); ++g) {
    auto const& [name, gradient] = mine.gradients[g];
    auto const spec = std::find_if(model.spec.params.begin(), model.spec.params.end(), [&](ParamSpec const& p) { return p.name == name; });
    EXPECT_EQ(gradient, of_part(whole.gradients[g].second, spec->layout(), gradient.size())) << name;
  }
  EXPECT_EQ(mine.tally, whole.tally);
}

/// Sums in another order: far below what a fault makes.
void expect_near(std::vector<double> const& a, std::vector<double> const& b, double unit, std::string const& what) {
  ASSERT_EQ(a.size(), b.size()) << what;
  double largest = 0, apart = 0;
  for (std::size_t i = 0; i < a.size(); ++i) largest = std::max(largest, std::abs(b[i])), apart = std::max(apart, std::abs(a[i] - b[i]));
  EXPECT_LE(apart, 40 * unit * (largest + 1e-3)) << what;
}

void expect_near(GptRun const& a, GptRun const& b, double unit) {
  for (std::size_t i = 0; i < a.outputs.size(); ++i) expect_near(a.outputs[i], b.outputs[i], unit, "output");
  for (std::size_t i = 0; i < a.input_gradients.size(); ++i)
    expect_near(a.input_gradients[i], b.input_gradients[i], unit, "input gradient");
  for (std::size_t i = 0; i < a.gradients.size(); ++i)
    if (!a.gradients[i].first.ends_with("attn.k.bias"))  // zero but for rounding
      expect_near(a.gradients[i].second, b.gradients[i].second, unit, a.gradients[i].first);
  expect_near(a.tally, b.tally, unit, "tally");
}

struct Split {
  int parts;
  TokenRows rows;
  Tied tied;
  double dropout;
  DType dtype;
  std::int64_t vocabulary;
  friend std::ostream& operator<<(std::ostream& out, Split const& s) {
    return out << s.parts << (s.rows == TokenRows::cut ? " sequence" : "") << (s.tied == Tied::yes ? " tied " : " ") << s.dropout << " "
               << name(s.dtype) << " " << s.vocabulary;
  }
};

GptCase case_of(Split const& s) {
  return {.config = {.layers = 2,
                     .hidden = 24,
                     .heads = s.parts == 3 ? 3 : 4,
                     .seq = 12,
                     .vocab = s.vocabulary,
                     .dropout = s.dropout,
                     .tied = s.tied},
          .dtype = s.dtype};
}

class ParallelGpt : public ::testing::TestWithParam<Split> {};

TEST_P(ParallelGpt, equals_one_process_bit_for_bit_and_the_whole_model_within_rounding) {
  Split const& s = GetParam();
  GptCase const c = case_of(s);
  GptRun const twin = run_twin(c, s.parts, s.rows), whole = run_twin(c, 1, TokenRows::whole);
  expect_near(twin, whole, unit_roundoff(s.dtype));
  run_thread_ranks(s.parts, [&](Communicator& world) {
    expect_equal(run_rank(c, world, s.rows), twin, c, {world.size(), world.rank(), s.rows});
  });
}

constexpr DType f64 = DType::f64, f32 = DType::f32, bf16 = DType::bf16;
INSTANTIATE_TEST_SUITE_P(
    Splits, ParallelGpt,
    ::testing::Values(Split{2, TokenRows::whole, Tied::no, 0, f64, 61}, Split{2, TokenRows::cut, Tied::no, 0, f64, 61},
                      Split{3, TokenRows::whole, Tied::yes, 0.2, f32, 61}, Split{3, TokenRows::cut, Tied::yes, 0.2, f32, 61},
                      Split{4, TokenRows::whole, Tied::yes, 0.1, f64, 61}, Split{4, TokenRows::cut, Tied::no, 0.3, f64, 61},
                      Split{2, TokenRows::cut, Tied::yes, 0.2, bf16, 64}, Split{4, TokenRows::cut, Tied::no, 0, f64, 3}));

TEST(ParallelGptMore, sums_that_overlap_products_have_the_same_bits) {
  for (TokenRows const rows : {TokenRows::whole, TokenRows::cut})
    for (int const chunks : {2, 5, 40}) {
      GptCase c = case_of({3, rows, Tied::no, 0, f32, 61});
      GptRun const twin = run_twin(c, 3, rows);
      c.chunks = chunks;
      run_thread_ranks(3, [&](Communicator& world) { expect_equal(run_rank(c, world, rows), twin, c, {3, world.rank(), rows}); });
    }
}

/// Accumulated micro-batches, and a backward in two halves.
TEST(ParallelGptMore, sums_of_micro_batches_and_split_backwards_are_the_same) {
  for (TokenRows const rows : {TokenRows::whole, TokenRows::cut}) {
    GptCase c = case_of({2, rows, Tied::yes, 0.2, f64, 61});
    c.leaves = 3;
    GptRun const twin = run_twin(c, 2, rows), whole = run_twin(c, 1, TokenRows::whole);
    expect_near(twin, whole, unit_roundoff(f64));
    run_thread_ranks(2, [&](Communicator& world) {
      expect_equal(run_rank(c, world, rows, Wanted::input), twin, c, {2, world.rank(), rows});
    });
  }
}

TEST(ParallelGptMore, a_micro_batch_without_samples_takes_part) {
  GptCase c = case_of({2, TokenRows::cut, Tied::no, 0.2, f64, 61});
  c.rows = 0;
  GptRun const whole = run_twin(c, 1, TokenRows::whole);
  run_thread_ranks(2, [&](Communicator& world) {
    GptRun const mine = run_rank(c, world, TokenRows::cut);
    expect_equal(mine, run_twin(c, 2, TokenRows::cut), c, {2, world.rank(), TokenRows::cut});
    EXPECT_EQ(mine.tally, whole.tally);
  });
}

/// The formulas of strategies/tensor_parallel/README.md, in bytes of a ring.
TEST(ParallelGptMore, sends_what_the_formulas_say) {
  constexpr int t = 3;
  for (TokenRows const rows : {TokenRows::whole, TokenRows::cut}) {
    GptCase const c = case_of({t, rows, Tied::yes, 0.1, f64, 61});
    std::int64_t const L = c.config.layers, T = c.rows * c.config.seq, h = c.config.hidden, word = 8;
    std::int64_t const sum = (t - 1) * T * h * word / t;  // of a reduce-scatter or an all-gather; twice that of an all-reduce
    std::int64_t const loss = (t - 1) * 4 * T * word, norm = 2 * (t - 1) * 2 * h * word / t;
    run_thread_ranks(t, [&](Communicator& world) {
      Traffic traffic;
      auto const recording = make_recording(world, traffic);
      run_rank(c, *recording, rows);
      auto const expect = [&](Collective what, std::int64_t calls, std::int64_t sent) {
        EXPECT_EQ(traffic.total(what).calls, calls) << name(what);
        EXPECT_EQ(traffic.total(what).sent_bytes, sent) << name(what);
      };
      if (rows == TokenRows::whole) {
        expect(Collective::all_reduce, 4 * L + 2, (4 * L + 2) * 2 * sum);
        expect(Collective::all_gather, 1, loss);
        expect(Collective::reduce_scatter, 0, 0);
      } else {
        expect(Collective::all_gather, 6 * L + 3 + 1, (6 * L + 3) * sum + loss);
        expect(Collective::reduce_scatter, 4 * L + 2, (4 * L + 2) * sum);
        expect(Collective::all_reduce, 2 * L + 1, (2 * L + 1) * norm);
      }
    });
  }
}

/// Each rank normalises other rows; with gains other than 1 the sums over them differ.
TEST(ParallelGptMore, case_15_layer_norm_gradients_are_sums_over_all_rows) {
  GptCase const c = case_of({2, TokenRows::cut, Tied::no, 0, f64, 61});
  GptRun const serial = run_twin(c, 1, TokenRows::whole);
  run_thread_ranks(2, [&](Communicator& world) {
    GptRun const mine = run_rank(c, world, TokenRows::cut);
    int seen = 0;
    for (std::size_t g = 0; g < mine.gradients.size(); ++g) {
      if (mine.gradients[g].first.find("ln_") == std::string::npos) continue;
      expect_near(mine.gradients[g].second, serial.gradients[g].second, 0x1p-53, mine.gradients[g].first);
      ++seen;
    }
    EXPECT_EQ(seen, 10);
  });
}

}  // namespace
}  // namespace shardmark::testing
