#include "tensor/view.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

namespace shardmark {

std::int64_t View::elements() const {
  if (rank == 0) return 0;
  std::int64_t n = 1;
  for (int i = 0; i < rank; ++i) n *= shape[i];
  return n;
}

bool View::contiguous() const {
  std::int64_t expected = 1;
  for (int i = rank - 1; i >= 0; --i) {
    if (shape[i] != 1 && stride[i] != expected) return elements() == 0;
    expected *= shape[i];
  }
  return true;
}

View view_at(std::byte* data, Region* region, DType dtype, Shape shape) {
  expect(shape.size() >= 1 && shape.size() <= 4, "a view has one to four dimensions");
  View v;
  v.data = data;
  v.region = region;
  v.dtype = dtype;
  v.rank = std::uint8_t(shape.size());
  std::int64_t n = 1;
  for (int i = v.rank - 1; i >= 0; --i) {
    expect(shape[i] >= 0, "a dimension is negative");
    v.shape[i] = shape[i];
    v.stride[i] = n;
    n *= shape[i];
  }
  return v;
}

View reshape(View const& view, std::initializer_list<std::int64_t> shape) {
  View const out = view_at(view.data, view.region, view.dtype, Shape{shape.begin(), shape.size()});
  expect(view.contiguous() && out.elements() == view.elements(), "reshape needs a contiguous view of as many elements");
  return out;
}

View slice(View const& view, int dim, std::int64_t begin, std::int64_t end) {
  expect(dim >= 0 && dim < view.rank && begin >= 0 && begin <= end && end <= view.shape[dim], "a slice lies outside the view");
  View out = view;
  out.data += std::size_t(begin * view.stride[dim]) * width(view.dtype);
  out.shape[dim] = end - begin;
  return out;
}

std::pair<std::byte const*, std::byte const*> extent(View const& view) {
  if (view.elements() == 0) return {nullptr, nullptr};
  std::int64_t last = 0;
  for (int i = 0; i < view.rank; ++i) last += (view.shape[i] - 1) * view.stride[i];
  return {view.data, view.data + std::size_t(last + 1) * width(view.dtype)};
}

bool overlap(View const& a, View const& b) {
  auto const [a0, a1] = extent(a);
  auto const [b0, b1] = extent(b);
  return a0 != nullptr && b0 != nullptr && a0 < b1 && b0 < a1;
}

bool same_shape(View const& a, View const& b) {
  if (a.rank != b.rank) return false;
  for (int i = 0; i < a.rank; ++i)
    if (a.shape[i] != b.shape[i]) return false;
  return true;
}

std::string to_string(View const& view) { return fmt::format("{}[{}]", name(view.dtype), fmt::join(view.dims(), " x ")); }

}  // namespace shardmark
