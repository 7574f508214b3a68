#include "benchmarks/micro/support.hpp"

#include <map>

#include "base/random.hpp"
#include "benchmarks/support/limits.hpp"

namespace shardmark::micro {
namespace {

View dense(Backend& backend, DType type, std::initializer_list<std::int64_t> shape) {
  View const sized = view_at(nullptr, nullptr, type, {shape.begin(), shape.size()});
  Region const region = backend.reserve(sized.bytes(), Place::host);
  return view_at(region.data, nullptr, type, {shape.begin(), shape.size()});
}

/// Each rate is measured once a run; those of memory in steps of powers of two, which no cache is finer than.
Limits limits_at(Backend const& backend, double bytes) {
  static double const flops = peak_flops_per_second(backend.instruction_set());
  static std::map<std::size_t, double> rates;
  std::size_t footprint = std::size_t{1} << 14;
  while (double(footprint) < bytes) footprint *= 2;
  auto const [at, is_new] = rates.try_emplace(footprint, 0);
  if (is_new) at->second = memory_bytes_per_second(footprint);
  return {flops, at->second};
}

}  // namespace

View random_tensor(Backend& backend, DType type, std::initializer_list<std::int64_t> shape) {
  View const view = dense(backend, type, shape);
  Randoms const random(1, Purpose::synthetic_data, std::uint64_t(view.elements()));
  for (std::int64_t i = 0; i < view.elements(); ++i) {
    double const value = 2 * random.uniform(std::uint64_t(i)) - 1;
    type == DType::f64 ? view.as<double>()[i] = value : view.as<float>()[i] = float(value);
  }
  return view;
}

View random_integers(Backend& backend, DType type, std::initializer_list<std::int64_t> shape, std::int64_t below) {
  View const view = dense(backend, type, shape);
  Randoms const random(1, Purpose::synthetic_data, 1);
  for (std::int64_t i = 0; i < view.elements(); ++i) {
    std::uint64_t const value = random.below(std::uint64_t(below), std::uint64_t(i));
    type == DType::i64 ? view.as<std::int64_t>()[i] = std::int64_t(value) : view.as<std::int32_t>()[i] = std::int32_t(value);
  }
  return view;
}

void run_operation(benchmark::State& state, Backend& backend, Op const& op, double moved) {
  auto const stream = backend.stream();
  backend.run(*stream, op);  // pages and caches
  double seconds = 0;
  for (auto _ : state) {
    double const begin = thread_seconds();
    backend.run(*stream, op);
    double const took = thread_seconds() - begin;
    state.SetIterationTime(took);
    seconds += took;
  }
  double const runs = double(state.iterations());
  state.counters["gflops"] = 1e-9 * flops(op) * runs / seconds;
  state.counters["gbytes"] = 1e-9 * moved * runs / seconds;
  state.counters["share_of_limit"] = limits_at(backend, moved).seconds(flops(op), moved) * runs / seconds;
}

int run_registered(int argc, char** argv) {
  benchmark::Initialize(&argc, argv);
  if (benchmark::ReportUnrecognizedArguments(argc, argv)) return 2;
  benchmark::RunSpecifiedBenchmarks();
  benchmark::Shutdown();
  return 0;
}

}  // namespace shardmark::micro
