// Initial weights: distributed as asked, independent between elements, names and seeds; a slice holds what the full tensor has there; the
// same on every backend. Each check is shown to fail on weights with that fault.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "checks.hpp"
#include "model/zoo.hpp"
#include "validation/equivalence/core/harness.hpp"

namespace shardmark::testing {
namespace {

using ::testing::Contains;
using ::testing::IsEmpty;
using ::testing::StartsWith;

using Values = std::function<std::vector<double>(ParamSpec const&, std::uint64_t seed)>;
constexpr std::int64_t width = 251;  // a prime: rows start anywhere in a block of random words

/// A matrix, whole or cut.
ParamSpec matrix(Initial initial, std::string const& name = "h.0.attn.q.weight", Slice slice = {}) {
  ParamSpec param{.name = name, .full = {width, width}, .slice = slice, .unit = {}, .shape = {width, width}, .initial = initial};
  if (slice.dim >= 0) param.shape[std::size_t(slice.dim)] = slice.end - slice.begin;
  return param;
}

constexpr Initial bell{Initial::Kind::normal, 0.02, 0.5}, box{Initial::Kind::uniform, 0.3, -1};

double cumulative(Initial const& initial, double x) {
  double const z = (x - initial.mean) / initial.scale;
  return initial.kind == Initial::Kind::normal ? std::erfc(-z / std::sqrt(2)) / 2 : std::clamp((z + 1) / 2, 0.0, 1.0);
}

std::vector<std::string> faults_of(Values const& values) {
  Faults faults;
  for (Initial const& initial : {bell, box}) {
    bool const normal = initial.kind == Initial::Kind::normal;
    double const deviation = normal ? initial.scale : initial.scale / std::sqrt(3);
    std::vector<double> const x = values(matrix(initial), 1);
    faults.check("mean", mean_z(x, initial.mean, deviation));
    faults.check("variance", variance_z(x, initial.mean, deviation, normal ? 3 : 1.8));
    faults.check("distribution", distribution_z(x, [&](double v) { return cumulative(initial, v); }));
    for (std::int64_t lag : {std::int64_t{1}, std::int64_t{2}, std::int64_t{4}, width})
      faults.check("neighbours", lag_z(x, std::size_t(lag)));
    for (char const* name : {"h.1.attn.q.weight", "h.0.attn.k.weight", "h.0.attn.q.weighu", "wte.weight"})
      faults.check("names", correlation_z(x, values(matrix(initial, name), 1)));
    for (std::uint64_t seed : {0u, 2u, 256u}) faults.check("seeds", correlation_z(x, values(matrix(initial), seed)));
  }
  return faults.all();
}

/// Compares slices in both dimensions with the same place of the full matrix.
std::vector<std::string> slice_faults_of(Values const& values) {
  Faults faults;
  std::vector<double> const full = values(matrix(bell), 1);
  for (int dim : {0, 1})
    for (Slice const& slice :
         {Slice{dim, 0, 84}, Slice{dim, 84, 168}, Slice{dim, 168, width}, Slice{dim, 57, 57}, Slice{dim, 250, width}}) {
      ParamSpec const param = matrix(bell, "h.0.attn.q.weight", slice);
      std::vector<double> want;
      for (std::int64_t row = 0; row < param.shape[0]; ++row)
        for (std::int64_t column = 0; column < param.shape[1]; ++column)
          want.push_back(full[std::size_t((row + (dim == 0 ? slice.begin : 0)) * width + column + (dim == 1 ? slice.begin : 0))]);
      if (values(param, 1) != want) faults.found(dim == 0 ? "rows" : "columns");
    }
  return faults.all();
}

TEST(InitialValues, AreIndependentWithTheDistributionAskedFor) { EXPECT_THAT(faults_of(initial_values), IsEmpty()); }

TEST(InitialValues, SlicesHoldWhatTheFullTensorHas) { EXPECT_THAT(slice_faults_of(initial_values), IsEmpty()); }

TEST(InitialValues, FaultyOnesAreFound) {
  auto const with = [](auto&& change) {
    return [change](ParamSpec param, std::uint64_t seed) {
      change(param, seed);
      return initial_values(param, seed);
    };
  };
  EXPECT_THAT(faults_of(with([](ParamSpec& p, auto) { p.initial.mean *= 1.001; })), Contains(StartsWith("mean")));
  EXPECT_THAT(faults_of(with([](ParamSpec& p, auto) { p.initial.scale *= 1.03; })), Contains(StartsWith("variance")));
  // Uniform numbers with a normal's moments.
  EXPECT_THAT(faults_of(with([](ParamSpec& p, auto) {
                if (p.initial.kind == Initial::Kind::normal)
                  p.initial = {Initial::Kind::uniform, p.initial.scale * std::sqrt(3), p.initial.mean};
              })),
              Contains(StartsWith("distribution")));
  EXPECT_THAT(faults_of(with([](ParamSpec& p, auto) { p.name = "weight"; })), Contains(StartsWith("names")));
  EXPECT_THAT(faults_of(with([](ParamSpec&, std::uint64_t& seed) { seed = 1; })), Contains(StartsWith("seeds")));
  EXPECT_THAT(faults_of([](ParamSpec const& p, std::uint64_t seed) {
                std::vector<double> x = initial_values(p, seed);
                for (std::size_t i = 2; i < x.size(); i += 4) x[i] = x[i - 2];
                return x;
              }),
              Contains(StartsWith("neighbours")));
  // Each rank starts its slice as if it were a matrix of its own.
  auto const as_own = with([](ParamSpec& p, auto) { p.full = p.shape, p.slice = {}; });
  EXPECT_THAT(slice_faults_of(as_own), ::testing::IsSupersetOf({"rows", "columns"}));
}

/// Every parameter of a model, as a backend holds it.
std::vector<std::vector<double>> initialised(Backend& ops, DType type) {
  Model const model = make_gpt({.layers = 1, .hidden = 12, .heads = 2, .seq = 4, .vocab = 11}, type, 3, InitialStyle::verifying);
  auto const world = make_self();
  Bench bench(ops, *world, {});
  auto const stream = ops.stream();
  bench.arena.watch(*stream);
  ParameterStore store(model.spec, model.units_of(0, 3), model.backward_order(0, 3), {}, {}, {.compute = type, .states = 0}, bench.arena,
                       ops, *stream);
  initialise(model, store, ops, *stream);
  std::vector<std::vector<double>> out;
  for (ParamSpec const& param : model.spec.params) {
    View const flat = store.flat(Part::master, param.unit, Version{0});
    out.push_back(values_of(slice(flat, 0, param.offset, param.offset + param.elements())));
    EXPECT_EQ(out.back(), initial_values(param, model.seed)) << param.name << " on " << ops.name() << " " << name(type);
  }
  return out;
}

TEST(InitialValues, AreTheSameOnEveryBackendAndInEveryType) {
  auto const reference = make_reference_backend();
  auto const want = initialised(*reference, DType::f64);
  EXPECT_EQ(initialised(*reference, DType::f32), want);
  for (char const* set : {"scalar", "avx2", "avx512"})
    for (DType type : {DType::f32, DType::f64}) EXPECT_EQ(initialised(*make_cpu_backend(Determinism::fastest, set), type), want) << set;
}

}  // namespace
}  // namespace shardmark::testing
