#pragma once
// Dense fp64 matrices for error analysis, filled and multiplied by a backend. Allocates: only proofs use it.

#include <cmath>
#include <initializer_list>
#include <vector>

#include "backend/backend.hpp"

namespace shardmark {

class Dense {
 public:
  Dense() = default;
  explicit Dense(Shape shape) : shape_(shape.begin(), shape.end()) {
    std::int64_t n = 1;
    for (auto d : shape) n *= d;
    values_.resize(std::size_t(n));
  }
  Dense(std::initializer_list<std::int64_t> shape) : Dense(Shape{shape.begin(), shape.size()}) {}

  View view() { return view_at(reinterpret_cast<std::byte*>(values_.data()), nullptr, DType::f64, shape_); }
  std::vector<double>& values() { return values_; }
  std::vector<double> const& values() const { return values_; }
  double& operator[](std::int64_t i) { return values_[std::size_t(i)]; }
  double operator[](std::int64_t i) const { return values_[std::size_t(i)]; }
  std::int64_t elements() const { return std::int64_t(values_.size()); }
  std::int64_t dim(std::size_t i) const { return shape_[i]; }

  /// Every element x becomes f(x).
  template <class F>
  Dense& apply(F&& f) {
    for (double& x : values_) x = f(x);
    return *this;
  }

 private:
  std::vector<std::int64_t> shape_;
  std::vector<double> values_;
};

/// Moves numbers between views and dense matrices, and multiplies, on one backend and stream whose work completes at once.
class Bench {
 public:
  Bench(Backend& backend, Stream& stream) : backend_(backend), stream_(stream) {}

  void run(Op const& op) { backend_.run(stream_, op); }
  /// The view's elements in row-major order; any floating type.
  Dense load(View const& view) {
    Dense out(view.dims());
    if (out.elements() > 0) run(Copy{view, out.view()});
    return out;
  }
  Dense load_absolute(View const& view) {
    Dense out = load(view);
    return std::move(out.apply([](double x) { return std::abs(x); }));
  }
  void store(Dense& values, View const& view) {
    if (values.elements() > 0) run(Copy{values.view(), view});
  }
  /// op(a) op(b)
  Dense multiply(Dense& a, Transpose ta, Dense& b, Transpose tb) {
    Dense c{a.dim(ta == Transpose::no ? 0 : 1), b.dim(tb == Transpose::no ? 1 : 0)};
    run(Matmul{.a = a.view(), .b = b.view(), .c = c.view(), .ta = ta, .tb = tb, .bias = {}, .aux = {}});
    return c;
  }

 private:
  Backend& backend_;
  Stream& stream_;
};

}  // namespace shardmark
