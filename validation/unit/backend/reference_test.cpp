// The reference backend: every operation in every type against its own fp64 result, and spot values by hand.

#include <gtest/gtest.h>

#include "backend/decorators/rounding.hpp"
#include "backend/dropout_key.hpp"
#include "validation/unit/backend/within_rounding.hpp"

namespace shardmark {
namespace {

using cases::CaseSize;
using cases::expect_within_rounding;
using cases::is_update;
using cases::OpCase;

class Reference : public testing::Test {
 protected:
  std::unique_ptr<Backend> backend = make_reference_backend();
  HostStream stream{0};
  Bench bench{*backend, stream};
};

/// One row of numbers.
Dense line(std::vector<double> const& numbers) {
  Dense out{std::int64_t(numbers.size())};
  out.values() = numbers;
  return out;
}

TEST_F(Reference, NarrowTypesStayWithinTheirRounding) {
  std::size_t compared = 0;
  for (DType type : {DType::f32, DType::bf16})
    for (CaseSize const& size : cases::case_sizes()) {
      auto exact = cases::op_cases(DType::f64, size, 17, type), narrow = cases::op_cases(type, size, 17, type);
      for (std::size_t i = 0; i < narrow.size(); ++i) {
        ASSERT_EQ(narrow[i].label, exact[i].label);
        if (is_update(narrow[i])) continue;
        auto const roundings = rounding_of(exact[i].op, *backend, stream);
        backend->run(stream, exact[i].op);
        backend->run(stream, narrow[i].op);
        expect_within_rounding(narrow[i], exact[i], roundings, unit_roundoff(DType::bf16), unit_roundoff(accumulator(type)));
        ++compared;
      }
    }
  EXPECT_GT(compared, 400u);
}

TEST_F(Reference, WritesOnlyItsOutputsAndFiniteNumbers) {
  for (DType type : {DType::f64, DType::f32, DType::bf16})
    for (CaseSize const& size : cases::case_sizes())
      for (OpCase const& c : cases::op_cases(type, size, 3)) {
        backend->run(stream, c.op);
        EXPECT_TRUE(c.padding_intact()) << c.label;
        for (auto const& [view, numbers] : c.outputs())
          for (double x : numbers) ASSERT_TRUE(std::isfinite(x)) << c.label;
      }
}

TEST_F(Reference, EmptySumsArePlusZeroOrStay) {
  Dense a{3, 0}, b{0, 2}, c{3, 2};
  c.apply([](double) { return 7.0; });
  backend->run(stream, Matmul{.a = a.view(), .b = b.view(), .c = c.view(), .write = Write::accumulate, .bias = {}, .aux = {}});
  EXPECT_EQ(c.values(), std::vector<double>(6, 7.0));
  backend->run(stream, Matmul{.a = a.view(), .b = b.view(), .c = c.view(), .bias = {}, .aux = {}});
  EXPECT_EQ(c.values(), std::vector<double>(6, 0.0));
  EXPECT_FALSE(std::signbit(c[0]));
  Dense x{0, 2}, y{2};
  y[0] = -5;
  backend->run(stream, ColumnSum{x.view(), y.view(), Write::accumulate});
  EXPECT_EQ(y[0], -5);
  backend->run(stream, ColumnSum{x.view(), y.view(), Write::overwrite});
  EXPECT_EQ(y[0], 0);
}

TEST_F(Reference, AccumulatingAddsWhatOverwritingGives) {
  // The same numbers twice: cases of one label and seed are equal.
  auto first = cases::op_cases(DType::f64, {}, 5), second = cases::op_cases(DType::f64, {}, 5);
  int found = 0;
  for (std::size_t i = 0; i < first.size(); ++i)
    std::visit(
        [&](auto& op) {
          if constexpr (requires { op.write; }) {
            if (op.write != Write::accumulate) return;
            auto const before = first[i].outputs();
            backend->run(stream, first[i].op);
            std::get<std::remove_reference_t<decltype(op)>>(second[i].op).write = Write::overwrite;
            backend->run(stream, second[i].op);
            auto const sum = first[i].outputs(), alone = second[i].outputs();
            for (std::size_t v = 0; v < sum.size(); ++v)
              for (std::size_t e = 0; e < sum[v].second.size(); ++e)
                EXPECT_NEAR(sum[v].second[e], before[v].second[e] + alone[v].second[e], 1e-13) << first[i].label;
            ++found;
          }
        },
        first[i].op);
  EXPECT_EQ(found, 13);
}

TEST_F(Reference, MatmulIsThePlainSumOverAscendingK) {
  // Sums in another order give other bits with these numbers.
  auto cases = cases::op_cases(DType::f32, {37, 150, 200, 1, 1, 1, 1, 1, 3}, 9);
  for (OpCase const& c : cases) {
    auto const* op = std::get_if<Matmul>(&c.op);
    if (op == nullptr || op->epilogue != Epilogue::none || op->write == Write::accumulate) continue;
    backend->run(stream, c.op);
    auto at = [](View const& v, Transpose t, std::int64_t i, std::int64_t j) {
      return v.as<float>()[t == Transpose::no ? i * v.stride[0] + j : j * v.stride[0] + i];
    };
    for (std::int64_t i = 0; i < 37; ++i)
      for (std::int64_t j = 0; j < 150; ++j) {
        float sum = 0;
        for (std::int64_t k = 0; k < 200; ++k) sum += at(op->a, op->ta, i, k) * at(op->b, op->tb, k, j);
        ASSERT_EQ(at(op->c, Transpose::no, i, j), sum) << c.label;
      }
  }
}

TEST_F(Reference, SumTreeSplitsAtTheLargestPowerOfTwo) {
  // In fp32 with 2^24: the loop loses every 1, the tree keeps those that meet first.
  std::vector<std::vector<float>> values{{0x1p24f}, {1}, {1}, {1}, {1}, {1}, {1}};
  std::vector<View> in;
  for (auto& v : values) in.push_back(view_at(reinterpret_cast<std::byte*>(v.data()), nullptr, DType::f32, std::array<std::int64_t, 1>{1}));
  float out = 0;
  View const to = view_at(reinterpret_cast<std::byte*>(&out), nullptr, DType::f32, std::array<std::int64_t, 1>{1});
  backend->run(stream, SumTree{in, to});
  float const left = (0x1p24f + 1.0f) + (1.0f + 1.0f), right = (1.0f + 1.0f) + 1.0f;
  EXPECT_EQ(out, left + right);
  EXPECT_NE(out, 0x1p24f);
  // In place into any input.
  backend->run(stream, SumTree{in, in[5]});
  EXPECT_EQ(values[5][0], out);
}

TEST_F(Reference, NormsFollowLeavesOfTheFlatIndex) {
  Dense x{2500};
  for (std::int64_t i = 0; i < 2500; ++i) x[i] = 1;
  Dense leaves{3}, total{1};
  backend->run(stream, NormLeaves{x.view(), leaves.view()});
  EXPECT_EQ(leaves.values(), (std::vector<double>{1024, 1024, 452}));
  backend->run(stream, TreeTotal{leaves.view(), total.view()});
  EXPECT_EQ(total[0], 2500);
}

TEST_F(Reference, DropoutMaskIsAFunctionOfTheKey) {
  Dense x{3, 4000}, whole(x.view().dims());
  x.apply([](double) { return 1.0; });
  std::vector<std::int64_t> samples{7, 0, 7, 1, 8, 0};  // (update, sample)
  View const keys = view_at(reinterpret_cast<std::byte*>(samples.data()), nullptr, DType::i64, std::array<std::int64_t, 2>{3, 2});
  backend->run(stream, Dropout{x.view(), whole.view(), keys, 0.3, 42, 5});
  double kept = 0;
  int alike01 = 0, alike02 = 0;
  for (std::int64_t j = 0; j < 4000; ++j) {
    kept += whole[j] != 0 ? 1 : 0;
    EXPECT_DOUBLE_EQ(whole[j], whole[j] != 0 ? 1 / 0.7 : 0);
    alike01 += (whole[j] == 0) == (whole[4000 + j] == 0);
    alike02 += (whole[j] == 0) == (whole[8000 + j] == 0);
  }
  // Binomial, 5 standard deviations: sqrt(4000 0.21) = 29; two independent masks agree at 0.58: sqrt(4000 0.2436) = 31.
  EXPECT_NEAR(kept, 2800, 145);
  EXPECT_NEAR(alike01, 2320, 156);
  EXPECT_NEAR(alike02, 2320, 156);

  // A shard of the last dimension has the full tensor's mask.
  Dense part{3, 1000}, ones{3, 1000};
  ones.apply([](double) { return 1.0; });
  backend->run(stream, Dropout{ones.view(), part.view(), keys, 0.3, 42, 5, 1501, 4000});
  for (std::int64_t r = 0; r < 3; ++r)
    for (std::int64_t j = 0; j < 1000; ++j) ASSERT_EQ(part[r * 1000 + j], whole[r * 4000 + 1501 + j]);
  EXPECT_EQ(dropout_threshold(0), 0u);
  EXPECT_EQ(dropout_threshold(0.5), std::uint64_t{1} << 31);
}

TEST_F(Reference, CrossEntropyCountsAndScales) {
  Dense logits{3, 2}, tally{3}, dlogits{3, 2};
  logits.values() = {0, 0, 1, 3, 2, 2};
  std::vector<std::int32_t> target{1, 1, -1};
  View const t = view_at(reinterpret_cast<std::byte*>(target.data()), nullptr, DType::i32, std::array<std::int64_t, 1>{3});
  backend->run(stream, CrossEntropy{logits.view(), t, tally.view(), dlogits.view(), 0.5});
  EXPECT_NEAR(tally[0], std::log(2.0) + std::log1p(std::exp(-2.0)), 1e-15);
  EXPECT_EQ(tally[1], 2);
  EXPECT_EQ(tally[2], 1);  // the tie of row 0 goes to the lowest index, which is wrong
  EXPECT_EQ(dlogits[0], 0.25);
  EXPECT_EQ(dlogits[1], -0.25);
  EXPECT_EQ(dlogits[4], 0);
  Dense in_place = logits;
  backend->run(stream, CrossEntropy{in_place.view(), t, tally.view(), in_place.view(), 0.5});
  EXPECT_EQ(in_place.values(), dlogits.values());
  target[2] = 2;
  EXPECT_THROW(backend->run(stream, CrossEntropy{logits.view(), t, tally.view(), dlogits.view(), 0.5}), Error);
}

TEST_F(Reference, DecideClipsAndSkips) {
  Dense norm = line({25}), totals = line({12, 8, 3, 0}), values{scalars};
  auto at = [&](Scalar which) { return values[std::int64_t(which)]; };
  backend->run(stream, Decide{norm.view(), totals.view(), values.view(), 1.0, 0.25});
  EXPECT_DOUBLE_EQ(at(Scalar::clip), 1 / (5 + 1e-6));
  EXPECT_EQ(at(Scalar::loss), 1.5);
  EXPECT_EQ(at(Scalar::learning_rate), 0.25);
  EXPECT_EQ(at(Scalar::skip), 0);
  totals[3] = 1;
  backend->run(stream, Decide{norm.view(), totals.view(), values.view(), 0, 0.25});
  EXPECT_EQ(at(Scalar::clip), 1);
  EXPECT_EQ(at(Scalar::skip), 1);
  EXPECT_EQ(at(Scalar::update), 2);
  totals[3] = 0, norm[0] = std::numeric_limits<double>::quiet_NaN();
  backend->run(stream, Decide{norm.view(), totals.view(), values.view(), 1, 0.25});
  EXPECT_EQ(at(Scalar::skip), 1);
}

/// torch.optim, 3 steps of w = 1, g = 0.5, -0.25, 1 (lr 0.1, weight decay 0.01), by its documented recurrences in long double.
TEST_F(Reference, UpdatesFollowTheirRecurrences) {
  std::vector<double> const gradients{0.5, -0.25, 1};
  Dense values{scalars}, weight = line({1}), momentum{1}, adam = line({1}), first{1}, second{1}, g{1};
  values[std::int64_t(Scalar::learning_rate)] = 0.1;
  values[std::int64_t(Scalar::clip)] = 1;
  long double w = 1, buffer = 0, v = 1, m1 = 0, m2 = 0;
  for (int step = 1; step <= 3; ++step) {
    g[0] = gradients[std::size_t(step - 1)];
    values[std::int64_t(Scalar::update)] = step;
    SgdUpdate sgd{weight.view(), g.view(), momentum.view(), weight.view(), {}, values.view(), 0.9, 0.01};
    sgd.nesterov = true, sgd.decay_to = 1;
    backend->run(stream, sgd);
    AdamWUpdate adamw{adam.view(), g.view(), first.view(), second.view(), adam.view(), {}, values.view()};
    adamw.decay = 0.01, adamw.decay_to = 1;
    backend->run(stream, adamw);

    long double const decayed = g[0] + 0.01L * w;
    buffer = step == 1 ? decayed : 0.9L * buffer + decayed;
    w -= 0.1L * (decayed + 0.9L * buffer);
    v *= 1 - 0.1L * 0.01L;
    m1 = 0.9L * m1 + 0.1L * g[0], m2 = 0.999L * m2 + 0.001L * g[0] * g[0];
    v -= 0.1L * (m1 / (1 - powl(0.9L, step))) / (sqrtl(m2 / (1 - powl(0.999L, step))) + 1e-8L);
    EXPECT_NEAR(weight[0], double(w), 1e-15) << step;
    EXPECT_NEAR(adam[0], double(v), 1e-13) << step;
  }
}

TEST_F(Reference, SkippedUpdatesPassThrough) {
  Dense values{scalars}, weight = line({3, 4}), momentum = line({1, 2}), out{2}, g = line({1, std::nan("")});
  std::vector<std::uint16_t> compute(2);
  View const rounded = view_at(reinterpret_cast<std::byte*>(compute.data()), nullptr, DType::bf16, std::array<std::int64_t, 1>{2});
  values[std::int64_t(Scalar::skip)] = 1;
  backend->run(stream, SgdUpdate{weight.view(), g.view(), momentum.view(), out.view(), rounded, values.view(), 0.9});
  EXPECT_EQ(out.values(), weight.values());
  EXPECT_EQ(momentum.values(), (std::vector<double>{1, 2}));
  EXPECT_EQ(cases::numbers_in(rounded), weight.values());
}

TEST(Bfloat16, RoundsOnceToNearestEven) {
  EXPECT_EQ(float(bfloat16(1.0f + 0x1p-8f)), 1.0f);                           // a tie goes to even
  EXPECT_EQ(float(bfloat16(1.0f + 3 * 0x1p-8f)), 1.0f + 0x1p-6f);             // the next tie up
  EXPECT_EQ(float(round_to_bfloat16(1 + 0x1p-8 + 0x1p-40)), 1.0f + 0x1p-7f);  // fp32 first would make it a tie
  EXPECT_EQ(float(round_to_bfloat16(-(1 + 0x1p-8 - 0x1p-40))), -1.0f);
  EXPECT_TRUE(std::isnan(float(bfloat16(std::numeric_limits<float>::quiet_NaN()))));
  EXPECT_TRUE(std::isinf(float(round_to_bfloat16(1e300))));
}

TEST_F(Reference, NaNComesThrough) {
  Dense x = line({std::nan(""), -1, 2}), y{3}, flag{1};
  backend->run(stream, Relu{x.view(), y.view()});
  EXPECT_TRUE(std::isnan(y[0]));
  EXPECT_EQ(y[1], 0);
  backend->run(stream, FlagNonFinite{x.view(), flag.view()});
  backend->run(stream, FlagNonFinite{x.view(), flag.view()});
  EXPECT_EQ(flag[0], 2);
}

}  // namespace
}  // namespace shardmark
