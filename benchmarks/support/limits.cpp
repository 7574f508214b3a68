#include "benchmarks/support/limits.hpp"

#include <time.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "backend/backend.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#define SHARDMARK_WIDEST [[gnu::target_clones("default", "avx2", "avx512f")]]
#else
#define SHARDMARK_WIDEST
#endif

namespace shardmark {
namespace {

constexpr int trials = 7;
constexpr double trial_seconds = 2e-3;

// Enough sums in flight to cover a multiply-add's latency: 2 units x 4-5 cycles.
constexpr int sums = 12;
constexpr double factor = 0.999999, term = 1e-6;

/// Keeps results alive without storing them.
template <class V>
void use(V& value) {
  asm volatile("" : "+x"(value));
}

// Each function does `rounds` rounds of `sums` vector operations and returns the floating-point operations that they are.
double scalar_operations(std::int64_t rounds) {
  float s[sums] = {};
  for (std::int64_t i = 0; i < rounds; ++i)
    for (float& x : s) x = x * float(factor) + float(term), use(x);
  return double(rounds) * sums * 2;
}

#if defined(__x86_64__)
[[gnu::target("avx2,fma")]] double avx2_operations(std::int64_t rounds) {
  __m256 const a = _mm256_set1_ps(float(factor)), b = _mm256_set1_ps(float(term));
  __m256 s[sums];
  for (__m256& x : s) x = b;
  for (std::int64_t i = 0; i < rounds; ++i)
    for (__m256& x : s) x = _mm256_fmadd_ps(x, a, b), use(x);
  return double(rounds) * sums * 8 * 2;
}
[[gnu::target("avx512f")]] double avx512_operations(std::int64_t rounds) {
  __m512 const a = _mm512_set1_ps(float(factor)), b = _mm512_set1_ps(float(term));
  __m512 s[sums];
  for (__m512& x : s) x = b;
  for (std::int64_t i = 0; i < rounds; ++i)
    for (__m512& x : s) {
      x = _mm512_fmadd_ps(x, a, b);
      asm volatile("" : "+v"(x));
    }
  return double(rounds) * sums * 16 * 2;
}
#endif

// The widest vectors that the machine has.
SHARDMARK_WIDEST void negate(float* x, std::int64_t n) {
  for (std::int64_t i = 0; i < n; ++i) x[i] = -x[i];
}
SHARDMARK_WIDEST void sum(float const* x, std::int64_t n) {
  // As bits: integers may be added in any order, so the compiler makes vectors of them.
  std::uint32_t const* const bits = reinterpret_cast<std::uint32_t const*>(x);
  std::uint32_t total = 0;
  for (std::int64_t i = 0; i < n; ++i) total += bits[i];
  asm volatile("" : : "r"(total));
}

/// The best rate of several trials. work(n) returns how much n repetitions are.
template <class Work>
double best_rate(Work&& work) {
  std::int64_t n = 1;
  double best = 0;
  for (int trial = 0; trial < trials;) {
    double const begin = thread_seconds();
    double const amount = work(n);
    double const seconds = thread_seconds() - begin;
    if (seconds < trial_seconds) {
      n *= 2;
      continue;
    }
    best = std::max(best, amount / seconds);
    ++trial;
  }
  return best;
}

}  // namespace

double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
}

double Limits::seconds(double flops, double bytes) const { return std::max(flops / flops_per_second, bytes / bytes_per_second); }

double peak_flops_per_second(std::string const& instruction_set) {
#if defined(__x86_64__)
  if (instruction_set == "avx512") return best_rate(avx512_operations);
  if (instruction_set == "avx2") return best_rate(avx2_operations);
#endif
  return best_rate(scalar_operations);
}

double memory_bytes_per_second(std::size_t footprint_bytes) {
  std::int64_t const n = std::max<std::int64_t>(64, std::int64_t(footprint_bytes / sizeof(float))), half = n / 2;
  Pages const pages(std::size_t(n) * sizeof(float));
  auto* const x = reinterpret_cast<float*>(pages.data());
  std::fill_n(x, n, 1.f);
  auto const rate = [&](double bytes, auto&& pass) {
    return best_rate([&](std::int64_t repeats) {
      for (std::int64_t i = 0; i < repeats; ++i) {
        pass();
        asm volatile("" : : "r"(x) : "memory");
      }
      return double(repeats) * bytes;
    });
  };
  double const all = double(n) * sizeof(float);
  return std::max({rate(all, [&] { sum(x, n); }), rate(all, [&] { std::memcpy(x + half, x, std::size_t(half) * sizeof(float)); }),
                   rate(2 * all, [&] { negate(x, n); })});
}

}  // namespace shardmark
