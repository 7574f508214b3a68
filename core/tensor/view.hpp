#pragma once
// Views: typed, strided windows on memory that somebody else owns.

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>
#include <string>

#include "base/error.hpp"
#include "base/types.hpp"

namespace shardmark {

/// A piece of memory and what it is for. `touched_by` is a mask of stream indices that used it since it was handed out.
struct Region {
  std::byte* data = nullptr;
  std::size_t bytes = 0;
  Place place = Place::host;
  Book book = Book::workspace;
  std::uint32_t touched_by = 0;
};

using Shape = std::span<std::int64_t const>;

/// Up to four dimensions; strides in elements. A default View is absent (`!view`): operations treat it as "not asked for".
struct View {
  std::byte* data = nullptr;
  Region* region = nullptr;
  DType dtype = DType::f32;
  std::uint8_t rank = 0;
  std::array<std::int64_t, 4> shape{};
  std::array<std::int64_t, 4> stride{};

  explicit operator bool() const { return rank != 0; }
  std::int64_t elements() const;
  std::size_t bytes() const { return std::size_t(elements()) * width(dtype); }
  bool contiguous() const;
  Shape dims() const { return {shape.data(), rank}; }
  /// Typed pointer to the first element. @throws Error when T is not the view's type.
  template <class T>
  T* as() const;
};

/// A contiguous view of `shape` at `data`.
View view_at(std::byte* data, Region* region, DType dtype, Shape shape);
/// The same memory with another shape. @pre contiguous, equal number of elements.
View reshape(View const& view, std::initializer_list<std::int64_t> shape);
/// Elements [begin, end) of dimension `dim`.
View slice(View const& view, int dim, std::int64_t begin, std::int64_t end);
/// First and one-past-last byte that the view can touch; {nullptr, nullptr} when it is empty.
std::pair<std::byte const*, std::byte const*> extent(View const& view);
bool overlap(View const& a, View const& b);
bool same_shape(View const& a, View const& b);
std::string to_string(View const& view);

template <class T>
constexpr DType dtype_of();
template <>
constexpr DType dtype_of<double>() {
  return DType::f64;
}
template <>
constexpr DType dtype_of<float>() {
  return DType::f32;
}
template <>
constexpr DType dtype_of<std::int64_t>() {
  return DType::i64;
}
template <>
constexpr DType dtype_of<std::int32_t>() {
  return DType::i32;
}
template <>
constexpr DType dtype_of<std::uint8_t>() {
  return DType::u8;
}

template <class T>
T* View::as() const {
  expect(dtype == dtype_of<T>(), "a view is read as another type than it has");
  return reinterpret_cast<T*>(data);
}

}  // namespace shardmark
