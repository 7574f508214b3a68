#pragma once
// Instances of every operation with random data, the same numbers for every element type and backend: run one case on two backends,
// or in two types, and compare. Rows of strided views are padded with NaN, so that reading outside shows, and writing outside is
// found by padding_intact().

#include <cmath>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "backend/backend.hpp"
#include "backend/decorators/dense.hpp"
#include "backend/op_access.hpp"
#include "backend/reference/loops_memory.hpp"

namespace shardmark::cases {

/// The view's elements in row-major order, whatever their type.
inline std::vector<double> numbers_in(View const& view) {
  std::vector<double> out;
  auto read = [&](auto tag) {
    using T = decltype(tag);
    reference::each_offset(view, view, [&](std::int64_t i, std::int64_t) { out.push_back(double(view.as<T>()[i])); });
  };
  switch (view.dtype) {
    case DType::i64:
      read(std::int64_t{});
      break;
    case DType::i32:
      read(std::int32_t{});
      break;
    case DType::u8:
      read(std::uint8_t{});
      break;
    default:
      reference::with_floating(view.dtype, read);
  }
  return out;
}

inline void write_numbers(View const& view, std::vector<double> const& numbers) {
  std::size_t at = 0;
  auto write = [&](auto tag) {
    using T = decltype(tag);
    reference::each_offset(view, view, [&](std::int64_t i, std::int64_t) { view.as<T>()[i] = reference::cast<T>(numbers[at++]); });
  };
  switch (view.dtype) {
    case DType::i64:
      write(std::int64_t{});
      break;
    case DType::i32:
      write(std::int32_t{});
      break;
    case DType::u8:
      write(std::uint8_t{});
      break;
    default:
      reference::with_floating(view.dtype, write);
  }
}

/// Sizes of one set of cases; a zero makes empty pieces.
struct CaseSize {
  std::int64_t rows = 7, columns = 13, depth = 5;            // matrices
  std::int64_t batch = 2, length = 5, heads = 3, width = 4;  // attention
  std::int64_t vocabulary = 11;
  std::int64_t padding = 3;  // elements between rows
};

/// One, odd, larger than blocks and vectors, and empty.
inline std::vector<CaseSize> case_sizes() {
  return {{1, 1, 1, 1, 1, 1, 1, 1, 0},       {},
          {33, 70, 129, 3, 17, 2, 8, 61, 5}, {40, 257, 64, 2, 33, 1, 16, 130, 0},
          {0, 13, 5, 0, 5, 3, 4, 11, 2},     {7, 13, 0, 2, 0, 3, 4, 11, 1}};
}

/// An operation and the memory that its views point to. Moves keep addresses.
struct OpCase {
  struct Block {
    std::vector<std::byte> bytes;
    std::vector<View> views;  // what lies in it; the rest is padding
  };
  std::string label;
  Op op;
  std::vector<std::unique_ptr<Block>> blocks;
  std::vector<View> inputs;  // SumTree's

  OpCase() = default;
  OpCase(OpCase&&) = default;
  OpCase& operator=(OpCase&&) = default;

  bool padding_intact() const {
    for (auto const& block : blocks) {
      std::vector<bool> used(block->bytes.size(), false);
      for (View const& view : block->views)
        reference::each_offset(view, view, [&](std::int64_t i, std::int64_t) {
          std::size_t const first = std::size_t(view.data - block->bytes.data()) + std::size_t(i) * width(view.dtype);
          for (std::size_t b = 0; b < width(view.dtype); ++b) used[first + b] = true;
        });
      for (std::size_t b = 0; b < used.size(); ++b)
        if (!used[b] && block->bytes[b] != std::byte{0xff}) return false;
    }
    return true;
  }
  /// Written views and their numbers now.
  std::vector<std::pair<View, std::vector<double>>> outputs() const {
    std::vector<std::pair<View, std::vector<double>>> out;
    each_view(op, [&](View const& view, Access access) {
      if (writes_to(access)) out.emplace_back(view, numbers_in(view));
    });
    return out;
  }
};

/// Makes the memory of one case. Numbers are normal and representable in `grid`, fp32 or bf16.
class CaseMaker {
 public:
  CaseMaker(std::string label, DType type, DType grid, std::uint64_t seed, CaseSize size)
      : type_(type), grid_(grid), seed_(seed), random_(seed, Purpose::synthetic_data, stream_of(label)), size_(size) {
    case_.label = std::move(label);
  }
  DType type() const { return type_; }
  DType sum_type() const { return accumulator(type_); }
  CaseSize const& size() const { return size_; }
  std::uint64_t seed() const { return seed_; }

  /// A view with `padding` elements behind each row, filled with random numbers.
  View numbers(std::initializer_list<std::int64_t> shape, std::int64_t padding = 0) { return fill(room(type_, shape, padding)); }
  View numbers_as(DType type, std::initializer_list<std::int64_t> shape) { return fill(room(type, shape, 0)); }
  View zeros_as(DType type, std::initializer_list<std::int64_t> shape) {
    View const view = room(type, shape, 0);
    write_numbers(view, std::vector<double>(std::size_t(view.elements()), 0.0));
    return view;
  }
  View integers(DType type, std::initializer_list<std::int64_t> shape, std::int64_t below) {
    View const view = room(type, shape, 0);
    std::vector<double> values(static_cast<std::size_t>(view.elements()));
    for (double& v : values) v = double(random_.below(std::uint64_t(below), next_++));
    write_numbers(view, values);
    return view;
  }
  /// Three [batch, length, heads, width] views side by side in one buffer, like q, k and v of a fused projection.
  std::array<View, 3> fused_heads() {
    CaseSize const& s = size_;
    View const whole = room(type_, {s.batch * s.length, 3 * s.heads * s.width}, 0);
    std::int64_t const pitch = 3 * s.heads * s.width;
    std::array<View, 3> out;
    case_.blocks.back()->views.clear();
    for (std::size_t i = 0; i < 3; ++i) {
      std::array<std::int64_t, 4> const shape{s.batch, s.length, s.heads, s.width};
      out[i] = view_at(whole.data + i * std::size_t(s.heads * s.width) * width(type_), nullptr, type_, shape);
      out[i].stride = {s.length * pitch, pitch, s.width, 1};
      case_.blocks.back()->views.push_back(fill(out[i]));
    }
    return out;
  }

  /// Fills `view` by hand.
  static void set(View const& view, std::vector<double> const& numbers) { write_numbers(view, numbers); }

  std::vector<View>& inputs() { return case_.inputs; }
  OpCase finish(Op const& op) {
    case_.op = op;
    return std::move(case_);
  }

 private:
  View room(DType type, std::initializer_list<std::int64_t> shape, std::int64_t padding) {
    View view = view_at(nullptr, nullptr, type, Shape{shape.begin(), shape.size()});
    std::int64_t pitch = columns_of(view) + padding;
    for (int i = view.rank - 2; i >= 0; --i) {
      view.stride[std::size_t(i)] = pitch;
      pitch *= view.shape[std::size_t(i)];
    }
    auto block = std::make_unique<OpCase::Block>();
    // A byte more, so that even empty views have an address of their own.
    block->bytes.assign(std::size_t(std::max(pitch, view.elements())) * width(type) + 8, std::byte{0xff});
    view.data = block->bytes.data();
    block->views.push_back(view);
    case_.blocks.push_back(std::move(block));
    return view;
  }
  View fill(View const& view) {
    std::vector<double> values(static_cast<std::size_t>(view.elements()));
    for (double& v : values) {
      float const x = float(random_.normal(next_++));
      v = grid_ == DType::bf16 ? double(float(bfloat16(x))) : double(x);
    }
    write_numbers(view, values);
    return view;
  }

  OpCase case_;
  DType type_, grid_;
  std::uint64_t seed_;
  Randoms random_;
  CaseSize size_;
  std::uint64_t next_ = 0;
};

/// Every operation at one size: transposes, strides, epilogues, accumulation, aliases. Inputs are representable in `grid`, so
/// that cases of two types can have the same numbers.
std::vector<OpCase> op_cases(DType type, CaseSize size, std::uint64_t seed, DType grid = DType::f32);
/// The part of it on images and batch statistics.
std::vector<OpCase> image_cases(DType type, CaseSize size, std::uint64_t seed, DType grid);

}  // namespace shardmark::cases
