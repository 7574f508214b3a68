// Decorators that bound rounding: perturbed and absolute.

#include <gtest/gtest.h>

#include "backend/decorators/absolute.hpp"
#include "backend/decorators/perturbed.hpp"
#include "validation/unit/backend/op_cases.hpp"

namespace shardmark {
namespace {

using cases::OpCase;

/// All fp64 outputs of all cases, one after the other, run on `backend`.
std::vector<double> run_cases(Backend& backend, std::uint64_t seed = 23) {
  HostStream stream(0);
  std::vector<double> out;
  for (OpCase const& c : cases::op_cases(DType::f64, {}, seed)) {
    backend.run(stream, c.op);
    for (auto const& [view, numbers] : c.outputs())
      if (view.dtype == DType::f64) out.insert(out.end(), numbers.begin(), numbers.end());
  }
  return out;
}

double largest_distance(std::vector<double> const& a, std::vector<double> const& b) {
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::abs(a[i] - b[i]));
  return most;
}

TEST(Perturbed, DeviationIsProportionalToTheUnit) {
  auto const reference = make_reference_backend();
  std::vector<double> const exact = run_cases(*reference);
  PerturbedBackend small(*reference, {0x1p-34, 0x1p-34, 3}), large(*reference, {0x1p-24, 0x1p-24, 3});
  std::vector<double> const near = run_cases(small), far = run_cases(large);
  std::size_t moved = 0;
  for (std::size_t i = 0; i < exact.size(); ++i) {
    double const a = (near[i] - exact[i]) * 0x1p10, b = far[i] - exact[i];
    // Second-order terms (GELU after its moved input) and fp64's own grid are far smaller.
    EXPECT_NEAR(a, b, 0.01 * std::abs(b) + 1e-9) << i;
    moved += b != 0;
  }
  EXPECT_GT(moved, exact.size() / 2);
  EXPECT_GT(largest_distance(exact, far), 0x1p-24);
}

TEST(Perturbed, ARunIsReproducibleAndSeedsDiffer) {
  auto const reference = make_reference_backend();
  PerturbedBackend backend(*reference, {0x1p-24, 0x1p-24, 3});
  std::vector<double> const first = run_cases(backend);
  backend.restart(4);
  std::vector<double> const other = run_cases(backend);
  backend.restart(3);
  EXPECT_EQ(run_cases(backend), first);
  EXPECT_NE(other, first);
}

TEST(Perturbed, NothingMovesWithoutAUnitAndWhatIsSelectedNeverMoves) {
  auto const reference = make_reference_backend();
  PerturbedBackend still(*reference, {0, 0, 1});
  std::vector<double> const exact = run_cases(*reference), same = run_cases(still);
  // The fused bias + GELU in two parts is the same arithmetic.
  EXPECT_EQ(exact, same);
  HostStream stream(0);
  PerturbedBackend loud(*reference, {0.5, 0.5, 1});
  auto quiet_cases = cases::op_cases(DType::f64, {}, 2), loud_cases = cases::op_cases(DType::f64, {}, 2);
  int selected = 0;
  for (std::size_t i = 0; i < quiet_cases.size(); ++i) {
    Op const& op = quiet_cases[i].op;
    bool const exact_op = std::holds_alternative<Relu>(op) || std::holds_alternative<Fill>(op) || std::holds_alternative<SgdUpdate>(op) ||
                          std::holds_alternative<AdamWUpdate>(op) || std::holds_alternative<Decide>(op) ||
                          quiet_cases[i].label == "copy/fp64";
    if (!exact_op) continue;
    reference->run(stream, op);
    loud.run(stream, loud_cases[i].op);
    for (std::size_t v = 0; v < quiet_cases[i].outputs().size(); ++v)
      EXPECT_EQ(quiet_cases[i].outputs()[v].second, loud_cases[i].outputs()[v].second) << quiet_cases[i].label;
    ++selected;
  }
  EXPECT_EQ(selected, 8);
}

TEST(Perturbed, GradientsAreStoredInTheAccumulator) {
  auto const reference = make_reference_backend();
  HostStream stream(0);
  Bench bench(*reference, stream);
  PerturbedBackend coarse(*reference, {0.25, 0, 1});  // nothing but storage moves
  Dense a{2, 2}, c{2, 2};
  a.apply([](double) { return 1.0; });
  Region region;
  region.book = Book::gradients;
  View out = c.view();
  out.region = &region;
  coarse.run(stream, Matmul{.a = a.view(), .b = a.view(), .c = out, .bias = {}, .aux = {}});
  EXPECT_EQ(c[0], 2);
  region.book = Book::activations;
  coarse.run(stream, Matmul{.a = a.view(), .b = a.view(), .c = out, .bias = {}, .aux = {}});
  EXPECT_EQ(std::abs(c[0] - 2), 0.5);
}

TEST(Perturbed, AnAccumulatedOutputMovesByItsContribution) {
  auto const reference = make_reference_backend();
  HostStream stream(0);
  PerturbedBackend coarse(*reference, {0x1p-10, 0x1p-10, 1});
  Dense a{1, 1}, c{1, 1};
  a[0] = 1, c[0] = 1e6;
  coarse.run(stream, Matmul{.a = a.view(), .b = a.view(), .c = c.view(), .write = Write::accumulate, .bias = {}, .aux = {}});
  EXPECT_LE(std::abs(c[0] - 1e6 - 1), 2 * 0x1p-10 + 1e-9);
}

/// A product with a weight that is cast: ones, so that the result is the weight as it was seen.
struct CastWeight {
  std::unique_ptr<Backend> reference = make_reference_backend();
  HostStream stream{0};
  Dense one{1, 1}, weights{3, 64}, seen{1, 64};
  Region region{.data = weights.view().data, .bytes = 0, .book = Book::parameters};

  CastWeight() {
    one[0] = 1;
    for (std::int64_t i = 0; i < weights.elements(); ++i) weights[i] = double(i + 1);
  }
  View row(std::int64_t i) {
    View w = weights.view();
    w.region = &region;
    return slice(w, 0, i, i + 1);
  }
  std::vector<double> use(Backend& backend, std::int64_t i) {
    backend.run(stream, Matmul{.a = one.view(), .b = row(i), .c = seen.view(), .bias = {}, .aux = {}});
    return seen.values();
  }
};

TEST(Perturbed, AWeightIsCastTheSameForEachOfItsUses) {
  CastWeight at;
  PerturbedBackend backend(*at.reference, {.seed = 5, .cast = 0x1p-8});
  std::vector<double> const first = at.use(backend, 0), second = at.use(backend, 1), again = at.use(backend, 0);
  EXPECT_EQ(first, again);
  int up = 0;
  for (std::size_t i = 0; i < first.size(); ++i) {
    EXPECT_EQ(std::abs(first[i] - double(i + 1)), 0x1p-8 * double(i + 1));
    up += first[i] > double(i + 1) ? 1 : 0;
    EXPECT_EQ(at.weights[std::int64_t(i)], double(i + 1));  // the weight itself stays
  }
  EXPECT_GT(up, 10);
  EXPECT_LT(up, 54);
  // Rows have signs of their own.
  std::size_t alike = 0;
  for (std::size_t i = 0; i < first.size(); ++i) alike += (first[i] > double(i + 1)) == (second[i] > double(i + 65)) ? 1 : 0;
  EXPECT_LT(alike, first.size());
  backend.restart(6);
  EXPECT_NE(at.use(backend, 0), first);
}

TEST(Perturbed, UpdatesSeeTheWeightItself) {
  CastWeight at;
  PerturbedBackend backend(*at.reference, {.seed = 5, .cast = 0x1p-8});
  Dense gradient{64}, out{64}, scalar_values{scalars};
  backend.run(at.stream, SgdUpdate{.weight = reshape(at.row(2), {64}),
                                   .gradient = gradient.view(),
                                   .momentum = {},
                                   .out = out.view(),
                                   .compute = {},
                                   .scalars = scalar_values.view()});
  for (std::int64_t i = 0; i < 64; ++i) EXPECT_EQ(out[i], double(129 + i));
}

TEST(Perturbed, DataAreCastAsTheyCome) {
  CastWeight at;
  PerturbedBackend narrow(*at.reference, {.seed = 5, .cast = 0x1p-8}), exact(*at.reference, {.store = 0x1p-8, .seed = 5});
  Region data{.book = Book::data};
  View to = at.seen.view();
  to.region = &data;
  View from = at.row(0);
  from.region = nullptr;
  narrow.run(at.stream, Copy{from, to});
  for (std::int64_t i = 0; i < 64; ++i) EXPECT_EQ(std::abs(at.seen[i] - double(i + 1)), 0x1p-8 * double(i + 1));
  exact.run(at.stream, Copy{from, to});
  for (std::int64_t i = 0; i < 64; ++i) EXPECT_EQ(at.seen[i], double(i + 1));
}

TEST(Rounding, MagnitudeIsAtLeastTheContraction) {
  auto const reference = make_reference_backend();
  HostStream stream(0);
  std::size_t checked = 0;
  for (cases::CaseSize const& size : cases::case_sizes())
    for (OpCase const& c : cases::op_cases(DType::f64, size, 31)) {
      auto const roundings = rounding_of(c.op, *reference, stream);
      bool accumulates = false;
      std::visit(
          [&](auto const& op) {
            if constexpr (requires { op.write; }) accumulates = op.write == Write::accumulate;
          },
          c.op);
      reference->run(stream, c.op);
      if (accumulates) continue;
      for (OutputRounding const& r : roundings) {
        if (width(r.output.dtype) < 8) continue;  // a cast: no sum
        std::vector<double> const y = cases::numbers_in(r.output);
        ASSERT_EQ(r.absolute.size(), y.size());
        for (std::size_t i = 0; i < y.size(); ++i) {
          // Tallies hold counts too, which are exact; lse counts in units of the longest sum.
          if (r.stored == StoredAs::exact && i > 0) continue;
          double const scale = std::holds_alternative<Attention>(c.op) ? std::sqrt(r.terms) : 1;
          ASSERT_GE(scale * r.absolute[i], std::abs(y[i]) * (1 - 1e-12)) << c.label << " " << i;
          ++checked;
        }
      }
    }
  EXPECT_GT(checked, 10000u);
}

TEST(Absolute, KeepsMagnitudesByMemory) {
  auto const reference = make_reference_backend();
  AbsoluteBackend absolute(*reference);
  HostStream stream(0);
  Dense a{2, 3}, b{3, 4}, c{2, 4};
  a.values() = {1, -2, 3, -4, 5, -6};
  for (std::int64_t i = 0; i < 12; ++i) b[i] = i % 2 == 0 ? 1 : -1;
  EXPECT_FALSE(absolute.lookup(c.view()));
  absolute.run(stream, Matmul{.a = a.view(), .b = b.view(), .c = c.view(), .bias = {}, .aux = {}});
  auto const whole = absolute.lookup(c.view());
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->absolute, (std::vector<double>{6, 6, 6, 6, 15, 15, 15, 15}));
  EXPECT_EQ(whole->terms, 3);
  auto const column = absolute.lookup(slice(c.view(), 1, 1, 3));
  ASSERT_TRUE(column);
  EXPECT_EQ(column->absolute, (std::vector<double>{6, 6, 15, 15}));
  EXPECT_EQ(absolute.lookup(reshape(c.view(), {8}))->absolute, whole->absolute);

  absolute.run(stream, Matmul{.a = a.view(), .b = b.view(), .c = c.view(), .write = Write::accumulate, .bias = {}, .aux = {}});
  EXPECT_EQ(absolute.lookup(c.view())->absolute[7], 30);
  EXPECT_EQ(absolute.lookup(c.view())->terms, 4);
  absolute.run(stream, Fill{slice(c.view(), 0, 1, 2), 0});
  EXPECT_FALSE(absolute.lookup(c.view()));
  EXPECT_TRUE(absolute.lookup(slice(c.view(), 0, 0, 1)));
}

TEST(Absolute, SumsCarryTheirTermsOn) {
  auto const reference = make_reference_backend();
  AbsoluteBackend absolute(*reference);
  HostStream stream(0);
  Dense x{3, 2}, g0{2}, g1{2}, plain{2};
  x.values() = {1, -1, -2, 2, 3, 3};
  absolute.run(stream, ColumnSum{x.view(), g0.view()});
  absolute.run(stream, ColumnSum{x.view(), g1.view()});
  plain.values() = {-7, 8};
  std::array<View, 3> const in{g0.view(), g1.view(), plain.view()};
  absolute.run(stream, SumTree{in, g0.view()});
  auto const sum = absolute.lookup(g0.view());
  ASSERT_TRUE(sum);
  EXPECT_EQ(sum->absolute, (std::vector<double>{6 + 6 + 7, 6 + 6 + 8}));
  EXPECT_EQ(sum->terms, 2 + 2);  // two additions in a column, a tree of depth two
  absolute.run(stream, Copy{g0.view(), plain.view()});
  EXPECT_EQ(absolute.lookup(plain.view())->absolute, sum->absolute);
}

TEST(Absolute, DoesNotChangeResults) {
  auto const reference = make_reference_backend();
  AbsoluteBackend absolute(*reference);
  EXPECT_EQ(run_cases(absolute), run_cases(*reference));
}

}  // namespace
}  // namespace shardmark
