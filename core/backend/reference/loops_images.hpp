#pragma once
// Convolution and pooling of images [B,H,W,C], as their formulas say.

#include <algorithm>

#include "backend/reference/rows.hpp"

namespace shardmark::reference {

/// Calls f(position b,i,j of y, position b,r,s of x, k, l) for each window element that lies on the image, in ascending order: both
/// positions count pixels, not channels.
template <class F>
void each_window(View const& x, View const& y, SlidingWindow const& window, F&& f) {
  std::int64_t const height = x.shape[1], width = x.shape[2];
  std::int64_t at = 0;
  for (std::int64_t b = 0; b < y.shape[0]; ++b)
    for (std::int64_t i = 0; i < y.shape[1]; ++i)
      for (std::int64_t j = 0; j < y.shape[2]; ++j, ++at)
        for (std::int64_t k = 0; k < window.height; ++k)
          for (std::int64_t l = 0; l < window.width; ++l) {
            std::int64_t const r = i * window.stride + k - window.padding, s = j * window.stride + l - window.padding;
            if (r >= 0 && r < height && s >= 0 && s < width) f(at, (b * height + r) * width + s, k, l);
          }
}

/// First of the channels that output o's filter has at (k, l).
template <class T>
T* filter(View const& w, std::int64_t o, std::int64_t k, std::int64_t l) {
  return w.as<T>() + ((o * w.shape[1] + k) * w.shape[2] + l) * w.shape[3];
}

/// @param sums  room for one image position's outputs
template <class T, class Tick>
void convolution(Convolution const& o, std::span<Accumulator<T>> sums, Tick&& tick) {
  using A = Accumulator<T>;
  std::int64_t const outputs = o.y.shape[3], channels = o.x.shape[3], positions = rows_of(o.y);
  std::int64_t done = 0;
  auto const store_before = [&](std::int64_t end) {
    for (; done < end; ++done) {
      for (std::int64_t c = 0; c < outputs; ++c) o.y.as<T>()[done * outputs + c] = T(sums[std::size_t(c)]);
      std::fill(sums.begin(), sums.end(), A(0));
      tick();
    }
  };
  std::fill(sums.begin(), sums.end(), A(0));
  each_window(o.x, o.y, o.window, [&](std::int64_t at, std::int64_t pixel, std::int64_t k, std::int64_t l) {
    store_before(at);
    T const* const x = o.x.as<T>() + pixel * channels;
    for (std::int64_t c = 0; c < outputs; ++c) {
      T const* const w = filter<T>(o.w, c, k, l);
      for (std::int64_t i = 0; i < channels; ++i) sums[std::size_t(c)] += A(x[i]) * A(w[i]);
    }
  });
  store_before(positions);
}

/// @param sums  room for the gradient of one image
template <class T, class Tick>
void convolution_input(ConvolutionInput const& o, std::span<Accumulator<T>> sums, Tick&& tick) {
  using A = Accumulator<T>;
  std::int64_t const outputs = o.dy.shape[3], channels = o.dx.shape[3], image = o.dx.shape[1] * o.dx.shape[2] * channels;
  for (std::int64_t b = 0; b < o.dx.shape[0]; ++b) {
    View const dx = slice(o.dx, 0, b, b + 1), dy = slice(o.dy, 0, b, b + 1);
    std::fill(sums.begin(), sums.end(), A(0));
    each_window(dx, dy, o.window, [&](std::int64_t at, std::int64_t pixel, std::int64_t k, std::int64_t l) {
      for (std::int64_t c = 0; c < outputs; ++c) {
        A const g = A(dy.as<T>()[at * outputs + c]);
        T const* const w = filter<T>(o.w, c, k, l);
        for (std::int64_t i = 0; i < channels; ++i) sums[std::size_t(pixel * channels + i)] += g * A(w[i]);
      }
    });
    for (std::int64_t i = 0; i < image; ++i) dx.as<T>()[i] = T(sums[std::size_t(i)]);
    tick();
  }
}

template <class T, class Tick>
void convolution_weight(ConvolutionWeight const& o, Tick&& tick) {
  using A = Accumulator<T>;
  std::int64_t const outputs = o.dy.shape[3], channels = o.x.shape[3];
  if (o.write == Write::overwrite) std::fill_n(o.dw.as<A>(), o.dw.elements(), A(0));
  for (std::int64_t b = 0; b < o.x.shape[0]; ++b) {
    View const x = slice(o.x, 0, b, b + 1), dy = slice(o.dy, 0, b, b + 1);
    each_window(x, dy, o.window, [&](std::int64_t at, std::int64_t pixel, std::int64_t k, std::int64_t l) {
      T const* const values = x.as<T>() + pixel * channels;
      for (std::int64_t c = 0; c < outputs; ++c) {
        A const g = A(dy.as<T>()[at * outputs + c]);
        A* const dw = filter<A>(o.dw, c, k, l);
        for (std::int64_t i = 0; i < channels; ++i) dw[i] += g * A(values[i]);
      }
    });
    tick();
  }
}

/// @param sums  room for one position's channels
template <class T>
void average_pool(AveragePool const& o, std::span<Accumulator<T>> sums) {
  using A = Accumulator<T>;
  std::int64_t const channels = o.x.shape[3];
  T* y = o.y.as<T>();
  for (std::int64_t b = 0; b < o.y.shape[0]; ++b)
    for (std::int64_t i = 0; i < o.y.shape[1]; ++i)
      for (std::int64_t j = 0; j < o.y.shape[2]; ++j, y += channels) {
        std::fill(sums.begin(), sums.end(), A(0));
        for (std::int64_t r = i * o.height; r < (i + 1) * o.height; ++r)
          for (std::int64_t s = j * o.width; s < (j + 1) * o.width; ++s) {
            T const* const x = o.x.as<T>() + ((b * o.x.shape[1] + r) * o.x.shape[2] + s) * channels;
            for (std::int64_t c = 0; c < channels; ++c) sums[std::size_t(c)] += A(x[c]);
          }
        for (std::int64_t c = 0; c < channels; ++c) y[c] = T(sums[std::size_t(c)] / A(o.height * o.width));
      }
}

template <class T>
void average_pool_input(AveragePoolInput const& o) {
  using A = Accumulator<T>;
  std::int64_t const channels = o.dx.shape[3], down = o.dy.shape[1], across = o.dy.shape[2];
  T* dx = o.dx.as<T>();
  for (std::int64_t b = 0; b < o.dx.shape[0]; ++b)
    for (std::int64_t r = 0; r < o.dx.shape[1]; ++r)
      for (std::int64_t s = 0; s < o.dx.shape[2]; ++s, dx += channels) {
        std::int64_t const i = r / o.height, j = s / o.width;
        T const* const dy = o.dy.as<T>() + ((b * down + i) * across + j) * channels;
        bool const inside = i < down && j < across;
        for (std::int64_t c = 0; c < channels; ++c) dx[c] = inside ? T(A(dy[c]) / A(o.height * o.width)) : T(0);
      }
}

}  // namespace shardmark::reference
