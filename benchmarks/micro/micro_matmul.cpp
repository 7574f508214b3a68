// The deterministic matmul beside oneDNN's, in GFLOP/s per shape and transpose.
//
// Each iteration runs both, one after the other in turns, so that a drifting clock or a busy neighbour meets both alike. Times are the
// thread's own, medians over the iterations; `own_over_library` is the ratio of the rates, the number to look at.

#include <benchmark/benchmark.h>

#include <time.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

#include "backend/backend.hpp"
#include "base/random.hpp"

namespace shardmark {
namespace {

struct Case {
  std::int64_t m, n, k;
  Transpose ta, tb;
  std::string name() const {
    auto letter = [](Transpose t) { return t == Transpose::yes ? "T" : "N"; };
    return std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k) + "/" + letter(ta) + letter(tb);
  }
  double flops() const { return 2.0 * double(m) * double(n) * double(k); }
};

/// A matrix of uniform numbers in [-1, 1), in a backend's memory.
View matrix(Backend& backend, DType type, std::int64_t rows, std::int64_t columns) {
  std::array const shape{rows, columns};
  Region const region = backend.reserve(std::size_t(rows * columns) * width(type), Place::host);
  View const view = view_at(region.data, nullptr, type, shape);
  Randoms const random(1, Purpose::synthetic_data, std::uint64_t(rows * 31 + columns));
  for (std::int64_t i = 0; i < rows * columns; ++i) {
    double const value = 2 * random.uniform(std::uint64_t(i)) - 1;
    type == DType::f64 ? view.as<double>()[i] = value : view.as<float>()[i] = float(value);
  }
  return view;
}

Matmul problem(Backend& backend, DType type, Case const& c) {
  Matmul op;
  op.ta = c.ta;
  op.tb = c.tb;
  op.a = c.ta == Transpose::no ? matrix(backend, type, c.m, c.k) : matrix(backend, type, c.k, c.m);
  op.b = c.tb == Transpose::no ? matrix(backend, type, c.k, c.n) : matrix(backend, type, c.n, c.k);
  op.c = matrix(backend, type, c.m, c.n);
  return op;
}

double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
}

/// Times of repeated runs of one operation.
class Times {
 public:
  void run(Backend& backend, Stream& stream, Op const& op) {
    double const start = thread_seconds();
    backend.run(stream, op);
    seconds_.push_back(thread_seconds() - start);
  }
  double median() {
    auto const middle = seconds_.begin() + std::ptrdiff_t(seconds_.size() / 2);
    std::nth_element(seconds_.begin(), middle, seconds_.end());
    return *middle;
  }

 private:
  std::vector<double> seconds_;
};

void beside_library(benchmark::State& state, Case const& c) {
  auto const own = make_cpu_backend(Determinism::deterministic), library = make_cpu_backend(Determinism::fastest);
  auto const stream = own->stream();
  Op const op = problem(*own, DType::f32, c);
  Times own_times, library_times;
  for (auto _ : state) {
    library_times.run(*library, *stream, op);
    own_times.run(*own, *stream, op);
  }
  state.counters["own_gflops"] = c.flops() / own_times.median() / 1e9;
  state.counters["library_gflops"] = c.flops() / library_times.median() / 1e9;
  state.counters["own_over_library"] = library_times.median() / own_times.median();
}

void in_fp64(benchmark::State& state, Case const& c) {
  auto const own = make_cpu_backend(Determinism::deterministic);
  auto const stream = own->stream();
  Op const op = problem(*own, DType::f64, c);
  Times times;
  for (auto _ : state) times.run(*own, *stream, op);
  state.counters["own_gflops"] = c.flops() / times.median() / 1e9;
}

constexpr std::int64_t shapes[][3] = {{1024, 512, 512},  {1024, 1536, 512}, {1024, 2048, 512}, {1024, 512, 2048}, {1024, 8192, 512},
                                      {512, 8192, 1024}, {512, 2048, 1024}, {64, 64, 64},      {17, 48, 61},      {1, 512, 512}};
constexpr Transpose transposes[][2] = {{Transpose::no, Transpose::no}, {Transpose::no, Transpose::yes}, {Transpose::yes, Transpose::no}};

}  // namespace
}  // namespace shardmark

int main(int argc, char** argv) {
  using namespace shardmark;
  for (auto const& s : shapes)
    for (auto const& t : transposes) {
      Case const c{s[0], s[1], s[2], t[0], t[1]};
      benchmark::RegisterBenchmark(("fp32/" + c.name()).c_str(), beside_library, c);
      benchmark::RegisterBenchmark(("fp64/" + c.name()).c_str(), in_fp64, c);
    }
  benchmark::Initialize(&argc, argv);
  benchmark::RunSpecifiedBenchmarks();
}
