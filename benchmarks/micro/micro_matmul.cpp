// The deterministic matmul beside oneDNN's, in GFLOP/s per shape and transpose.
//
// Each iteration runs both, one after the other in turns, so that a drifting clock or a busy neighbour meets both alike. Times are the
// thread's own, medians over the iterations; `own_over_library` is the ratio of the rates, the number to look at;
// `share_of_limit` is the own rate over that of multiply-adds in registers.

#include <algorithm>
#include <string>
#include <vector>

#include "benchmarks/micro/support.hpp"
#include "benchmarks/support/limits.hpp"

namespace shardmark::micro {
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

Matmul problem(Backend& backend, DType type, Case const& c) {
  Matmul op;
  op.ta = c.ta;
  op.tb = c.tb;
  op.a = c.ta == Transpose::no ? random_tensor(backend, type, {c.m, c.k}) : random_tensor(backend, type, {c.k, c.m});
  op.b = c.tb == Transpose::no ? random_tensor(backend, type, {c.k, c.n}) : random_tensor(backend, type, {c.n, c.k});
  op.c = random_tensor(backend, type, {c.m, c.n});
  return op;
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

/// Multiply-adds in registers, fp32, measured once a run.
double peak_of(Backend const& backend) {
  static double const peak = peak_flops_per_second(backend.instruction_set());
  return peak;
}

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
  state.counters["share_of_limit"] = c.flops() / own_times.median() / peak_of(*own);
}

void in_fp64(benchmark::State& state, Case const& c) {
  auto const own = make_cpu_backend(Determinism::deterministic);
  auto const stream = own->stream();
  Op const op = problem(*own, DType::f64, c);
  Times times;
  for (auto _ : state) times.run(*own, *stream, op);
  state.counters["own_gflops"] = c.flops() / times.median() / 1e9;
  state.counters["share_of_limit"] = c.flops() / times.median() / (peak_of(*own) / 2);
}

constexpr std::int64_t shapes[][3] = {{1024, 512, 512},  {1024, 1536, 512}, {1024, 2048, 512}, {1024, 512, 2048}, {1024, 8192, 512},
                                      {512, 8192, 1024}, {512, 2048, 1024}, {64, 64, 64},      {17, 48, 61},      {1, 512, 512}};
constexpr Transpose transposes[][2] = {{Transpose::no, Transpose::no}, {Transpose::no, Transpose::yes}, {Transpose::yes, Transpose::no}};

}  // namespace
}  // namespace shardmark::micro

int main(int argc, char** argv) {
  using namespace shardmark::micro;
  using shardmark::Transpose;
  for (auto const& s : shapes)
    for (auto const& t : transposes) {
      Case const c{s[0], s[1], s[2], t[0], t[1]};
      benchmark::RegisterBenchmark(("fp32/" + c.name()).c_str(), beside_library, c);
      benchmark::RegisterBenchmark(("fp64/" + c.name()).c_str(), in_fp64, c);
    }
  return run_registered(argc, argv);
}
