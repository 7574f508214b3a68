#pragma once
// What micro-benchmarks share: tensors of random numbers, and counters that hold a result against the limits of the same run.

#include <benchmark/benchmark.h>

#include "backend/backend.hpp"

namespace shardmark::micro {

/// A dense tensor of uniform numbers in [-1, 1), in a backend's memory.
View random_tensor(Backend& backend, DType type, std::initializer_list<std::int64_t> shape);
/// Integers in [0, below).
View random_integers(Backend& backend, DType type, std::initializer_list<std::int64_t> shape, std::int64_t below);

/// Runs the operation once an iteration, with the thread's own time. Counters: gflops and gbytes a second, and
/// share_of_limit: the least time for so much work (benchmarks/support/limits.hpp) over the time that it took.
/// @param moved  bytes read and written, where not every view moves once
void run_operation(benchmark::State& state, Backend& backend, Op const& op, double moved);

/// main() of a program that has registered its benchmarks.
int run_registered(int argc, char** argv);

}  // namespace shardmark::micro
