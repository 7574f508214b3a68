#pragma once
// A workbench for tests of operations: memory for views, random contents, both backends side by side.

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <deque>
#include <initializer_list>
#include <memory>
#include <string>
#include <vector>

#include "backend/backend.hpp"
#include "backend/op_access.hpp"
#include "backend/reference/rows.hpp"
#include "base/random.hpp"

namespace shardmark::testing {

/// Owns the memory of many views. `gap` adds unused elements behind each row, so that rows are strided.
class Workbench {
 public:
  View make(DType type, std::initializer_list<std::int64_t> shape, std::int64_t gap = 0) {
    View v = view_at(nullptr, nullptr, type, {shape.begin(), shape.size()});
    if (gap > 0 && v.rank >= 2) {
      std::int64_t stride = v.shape[v.rank - 1u] + gap;
      for (int i = v.rank - 2; i >= 0; --i) {
        v.stride[std::size_t(i)] = stride;
        stride *= v.shape[std::size_t(i)];
      }
    }
    std::int64_t span = 1;
    for (std::size_t i = 0; i < v.rank; ++i) span += std::max<std::int64_t>(0, v.shape[i] - 1) * v.stride[i];
    auto& memory = memory_.emplace_back(std::size_t(span + gap) * width(type) + 64, std::byte{0x7f});
    v.data = memory.data();
    return v;
  }
  /// Uniform in [low, high), from a stream of its own for each call.
  View random(DType type, std::initializer_list<std::int64_t> shape, double low = -1, double high = 1, std::int64_t gap = 0) {
    View v = make(type, shape, gap);
    Randoms const random(7, Purpose::synthetic_data, made_++);
    std::uint64_t index = 0;
    each(v, [&](auto& x) { x = std::remove_reference_t<decltype(x)>(low + (high - low) * random.uniform(index++)); });
    return v;
  }
  View integers(DType type, std::initializer_list<std::int64_t> shape, std::int64_t low, std::int64_t high) {
    View v = make(type, shape);
    Randoms const random(7, Purpose::synthetic_data, made_++);
    std::uint64_t index = 0;
    auto draw = [&] { return low + std::int64_t(random.below(std::uint64_t(high - low), index++)); };
    for (std::int64_t i = 0; i < v.elements(); ++i)
      type == DType::i64 ? v.as<std::int64_t>()[i] = draw() : v.as<std::int32_t>()[i] = std::int32_t(draw());
    return v;
  }
  /// The same shape, strides and contents elsewhere.
  View copy(View const& from) {
    View v = from;
    auto const [begin, end] = extent(from);
    std::size_t const bytes = std::size_t(end - begin);
    auto& memory = memory_.emplace_back(bytes + 64);
    if (bytes > 0) std::memcpy(memory.data(), begin, bytes);
    v.data = memory.data();
    return v;
  }

  /// f(element &) in row-major order, for floating views.
  template <class F>
  static void each(View const& v, F&& f) {
    reference::with_floating(v.dtype, [&](auto tag) {
      for (std::int64_t i = 0; i < v.elements(); ++i) f(at<decltype(tag)>(v, i));
    });
  }
  static std::vector<double> values(View const& v) {
    std::vector<double> out;
    each(v, [&](auto x) { out.push_back(double(x)); });
    return out;
  }

 private:
  template <class T>
  static T& at(View const& v, std::int64_t i) {
    std::int64_t offset = 0;
    for (int d = v.rank - 1; d >= 0; --d) {
      offset += i % v.shape[std::size_t(d)] * v.stride[std::size_t(d)];
      i /= v.shape[std::size_t(d)];
    }
    return v.as<T>()[offset];
  }

  std::deque<std::vector<std::byte>> memory_;
  std::uint64_t made_ = 0;
};

/// Bitwise: +0 differs from -0, a NaN equals itself.
inline void expect_same_bits(View const& a, View const& b, std::string const& what) {
  ASSERT_TRUE(same_shape(a, b)) << what;
  std::vector<double> const x = Workbench::values(a), y = Workbench::values(b);
  std::size_t differing = 0;
  for (std::size_t i = 0; i < x.size(); ++i) differing += std::memcmp(&x[i], &y[i], sizeof(double)) != 0 ? 1 : 0;
  EXPECT_EQ(differing, 0u) << what << ": of " << x.size() << " elements";
}

/// |a - b| <= bound(i) for every element.
template <class Bound>
void expect_near(View const& a, View const& b, std::string const& what, Bound&& bound) {
  ASSERT_TRUE(same_shape(a, b)) << what;
  std::vector<double> const x = Workbench::values(a), y = Workbench::values(b);
  for (std::size_t i = 0; i < x.size(); ++i)
    ASSERT_LE(std::abs(x[i] - y[i]), bound(i)) << what << ": element " << i << ", " << x[i] << " against " << y[i];
}

/// |a - b| <= factor u (1 + largest |b|): the error of sums and functions whose terms are of the size of the largest result.
inline void expect_close(View const& a, View const& b, std::string const& what, double factor) {
  double largest = 0;
  for (double const x : Workbench::values(b)) largest = std::max(largest, std::abs(x));
  double const bound = factor * unit_roundoff(a.dtype) * (1 + largest);
  expect_near(a, b, what, [=](std::size_t) { return bound; });
}

/// Runs on instruction set `GetParam()`; skips where the machine lacks it.
class OnInstructionSet : public ::testing::TestWithParam<char const*> {
 protected:
  void SetUp() override {
    if (cpu->instruction_set() != GetParam()) GTEST_SKIP() << "this processor has no " << GetParam();
  }
  void run(Op const& op) { cpu->run(*stream, op); }
  void run_reference(Op const& op) { reference->run(*reference_stream, op); }
  /// Runs `op` on both backends and compares every output; the reference gets copies of what is written.
  template <class O>
  void expect_like_reference(O const& op, std::string const& what, double factor) {
    O expected = op;
    std::vector<std::pair<View, View>> outputs;
    each_output(op, expected, [&](View const& view, View& twin) { outputs.emplace_back(view, twin = bench.copy(view)); });
    run(op);
    run_reference(expected);
    for (auto const& [ours, theirs] : outputs)
      factor == 0 ? expect_same_bits(ours, theirs, what) : expect_close(ours, theirs, what, factor);
  }

  /// f(output of `op`, the same member of `twin`)
  template <class O, class F>
  static void each_output(O const& op, O& twin, F&& f) {
    Op const held = op;
    auto const* const base = reinterpret_cast<char const*>(&std::get<O>(held));
    each_view(held, [&](View const& view, Access access) {
      if (!writes_to(access)) return;
      auto const offset = reinterpret_cast<char const*>(&view) - base;
      f(view, *reinterpret_cast<View*>(reinterpret_cast<char*>(&twin) + offset));
    });
  }

  std::unique_ptr<Backend> const cpu = make_cpu_backend(Determinism::deterministic, GetParam());
  std::unique_ptr<Backend> const reference = make_reference_backend();
  std::unique_ptr<Stream> const stream = cpu->stream(), reference_stream = reference->stream();
  Workbench bench;
};

#define SHARDMARK_ON_EVERY_INSTRUCTION_SET(Fixture)                                       \
  INSTANTIATE_TEST_SUITE_P(Every, Fixture, ::testing::Values("scalar", "avx2", "avx512"), \
                           [](auto const& set) { return std::string(set.param); })

inline constexpr DType floats[] = {DType::f32, DType::f64};
/// Every type that numbers are stored in.
inline constexpr DType stored[] = {DType::f32, DType::f64, DType::bf16};

}  // namespace shardmark::testing
