#pragma once
// Convolutions as unfold + matmul (Chellapilla, Puri and Simard 2006), a block of positions at a time, so that what is unfolded stays in
// the second-level cache. Blocks follow the position in the batch alone.

#include <algorithm>
#include <cstring>

#include "backend/cpu/image_room.hpp"
#include "backend/cpu/run.hpp"
#include "backend/reference/loops_images.hpp"

namespace shardmark::cpu {

/// What multiplies: the own matmul, or the library's where bits are free.
template <class T>
struct Multiply {
  Kernels<T> const& kernels;
  Determinism determinism;
  Stream& stream;

  void operator()(MatmulCall<T> const& call) const {
    if constexpr (std::is_same_v<T, float>)
      if (determinism == Determinism::fastest && call.k > 0) return library_matmul(call), stream.tick();
    kernels.matmul(call, scratch_of_thread(), stream);
  }
};

/// The windows of an image tensor as rows of a matrix [positions, height width C].
template <class T>
class Unfolded {
 public:
  static constexpr std::int64_t block_bytes = 256 << 10;

  Unfolded(View const& x, View const& y, SlidingWindow const& window)
      : x_(x), y_(y), window_(window), columns_(window.elements(x.shape[3])) {}

  std::int64_t columns() const { return columns_; }
  std::int64_t rows_in_block() const {
    return std::max<std::int64_t>(1, block_bytes / std::max<std::int64_t>(1, columns_ * std::int64_t(sizeof(T))));
  }
  T* room() const { return image_room<T>(rows_in_block() * columns_); }
  /// f(first position, positions) over blocks of all positions.
  template <class F>
  void each_block(F&& f) const {
    std::int64_t const positions = rows_of(y_), step = rows_in_block();
    for (std::int64_t p = 0; p < positions; p += step) f(p, std::min(step, positions - p));
  }

  void unfold(std::int64_t first, std::int64_t count, T* to) const {
    each_strip(first, count, [&](std::int64_t pixel, std::int64_t before, std::int64_t inside, std::int64_t after) {
      std::fill_n(to, before, T(0));
      if (inside > 0) std::memcpy(to + before, x_.as<T>() + pixel, std::size_t(inside) * sizeof(T));
      std::fill_n(to + before + inside, after, T(0));
      to += before + inside + after;
    });
  }
  /// The transpose of unfold: adds the rows to the image, in ascending order of positions.
  void fold(std::int64_t first, std::int64_t count, T const* from) const {
    each_strip(first, count, [&](std::int64_t pixel, std::int64_t before, std::int64_t inside, std::int64_t after) {
      T* const x = x_.as<T>() + pixel;
      from += before;
      for (std::int64_t i = 0; i < inside; ++i) x[i] += from[i];
      from += inside + after;
    });
  }

 private:
  /// f(offset in x of what lies inside, elements before, inside, after) for each row of each window.
  template <class F>
  void each_strip(std::int64_t first, std::int64_t count, F&& f) const {
    std::int64_t const height = x_.shape[1], width = x_.shape[2], channels = x_.shape[3], across = y_.shape[2];
    std::int64_t j = first % across, i = first / across % y_.shape[1], b = first / (across * y_.shape[1]);
    for (std::int64_t p = 0; p < count; ++p) {
      std::int64_t const s = j * window_.stride - window_.padding;
      std::int64_t const from = std::clamp<std::int64_t>(-s, 0, window_.width);
      std::int64_t const to = std::clamp<std::int64_t>(width - s, from, window_.width);
      for (std::int64_t k = 0; k < window_.height; ++k) {
        std::int64_t const r = i * window_.stride + k - window_.padding;
        bool const on_image = r >= 0 && r < height && to > from;
        std::int64_t const inside = on_image ? (to - from) * channels : 0;
        std::int64_t const before = on_image ? from * channels : 0;
        std::int64_t const pixel = on_image ? ((b * height + r) * width + s + from) * channels : 0;
        f(pixel, before, inside, window_.width * channels - before - inside);
      }
      if (++j < across) continue;
      j = 0;
      if (++i < y_.shape[1]) continue;
      i = 0;
      ++b;
    }
  }

  View const& x_;
  View const& y_;
  SlidingWindow const& window_;
  std::int64_t columns_;
};

template <class T>
void run(Multiply<T> const& multiply, Convolution const& o) {
  Unfolded<T> const windows(o.x, o.y, o.window);
  std::int64_t const outputs = o.y.shape[3], depth = windows.columns();
  T* const rows = windows.room();
  windows.each_block([&](std::int64_t first, std::int64_t count) {
    windows.unfold(first, count, rows);
    multiply({.a = rows,
              .b = o.w.as<T>(),
              .c = o.y.as<T>() + first * outputs,
              .lda = depth,
              .ldb = depth,
              .ldc = outputs,
              .m = count,
              .n = outputs,
              .k = depth,
              .tb = Transpose::yes});
  });
}

template <class T>
void run(Multiply<T> const& multiply, ConvolutionInput const& o) {
  Unfolded<T> const windows(o.dx, o.dy, o.window);
  std::int64_t const outputs = o.dy.shape[3], depth = windows.columns();
  T* const rows = windows.room();
  std::fill_n(o.dx.as<T>(), o.dx.elements(), T(0));
  windows.each_block([&](std::int64_t first, std::int64_t count) {
    multiply({.a = o.dy.as<T>() + first * outputs,
              .b = o.w.as<T>(),
              .c = rows,
              .lda = outputs,
              .ldb = depth,
              .ldc = depth,
              .m = count,
              .n = depth,
              .k = outputs});
    windows.fold(first, count, rows);
  });
}

template <class T>
void run(Multiply<T> const& multiply, ConvolutionWeight const& o) {
  Unfolded<T> const windows(o.x, o.dy, o.window);
  std::int64_t const outputs = o.dy.shape[3], depth = windows.columns();
  T* const rows = windows.room();
  if (o.write == Write::overwrite) std::fill_n(o.dw.as<T>(), o.dw.elements(), T(0));
  windows.each_block([&](std::int64_t first, std::int64_t count) {
    windows.unfold(first, count, rows);
    multiply({.a = o.dy.as<T>() + first * outputs,
              .b = rows,
              .c = o.dw.as<T>(),
              .lda = outputs,
              .ldb = depth,
              .ldc = depth,
              .m = outputs,
              .n = depth,
              .k = count,
              .ta = Transpose::yes,
              .write = Write::accumulate});
  });
}

inline void run_bfloat16(Stream& stream, Convolution const& o) {
  std::int64_t const outputs = o.y.shape[3];
  reference::convolution<bfloat16>(o, {image_room<float>(outputs), std::size_t(outputs)}, [&] { stream.tick(); });
}
inline void run_bfloat16(Stream& stream, ConvolutionInput const& o) {
  std::int64_t const image = o.dx.shape[1] * o.dx.shape[2] * o.dx.shape[3];
  reference::convolution_input<bfloat16>(o, {image_room<float>(image), std::size_t(image)}, [&] { stream.tick(); });
}
inline void run_bfloat16(Stream& stream, ConvolutionWeight const& o) {
  reference::convolution_weight<bfloat16>(o, [&] { stream.tick(); });
}

template <class T>
void run(Stream& stream, AveragePool const& o) {
  std::int64_t const channels = o.x.shape[3];
  reference::average_pool<T>(o, {image_room<Accumulator<T>>(channels), std::size_t(channels)});
  stream.tick();
}
template <class T>
void run(Stream& stream, AveragePoolInput const& o) {
  reference::average_pool_input<T>(o);
  stream.tick();
}

}  // namespace shardmark::cpu
