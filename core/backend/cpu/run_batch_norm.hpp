#pragma once
// Batch normalisation: sums over rows in blocks (run_columns.hpp), and passes of a row at a time.

#include "backend/cpu/image_room.hpp"
#include "backend/cpu/run_columns.hpp"
#include "backend/reference/loops_batch_norm.hpp"

namespace shardmark::cpu {

template <class T>
void run(Kernels<T> const& k, Stream& stream, BatchMoments const& o) {
  std::int64_t const rows = rows_of(o.x), channels = columns_of(o.x);
  using Sum = Accumulator<T>;
  Sum* const mean = image_room<Sum>(2 * channels);
  Sum* const squares = mean + channels;
  ColumnBlocks<T, 1> sums;
  sums.run(k, stream, rows, channels, {mean}, Write::overwrite,
           [&](std::int64_t r, std::int64_t from, std::int64_t n, auto& block) { k.add(row<T>(o.x, r) + from, block[0].data(), n); });
  for (std::int64_t c = 0; c < channels; ++c) mean[c] = rows == 0 ? Sum(0) : mean[c] / Sum(rows);
  sums.run(k, stream, rows, channels, {squares}, Write::overwrite, [&](std::int64_t r, std::int64_t from, std::int64_t n, auto& block) {
    T const* const x = row<T>(o.x, r) + from;
    for (std::int64_t c = 0; c < n; ++c) {
      Sum const apart = Sum(x[c]) - mean[from + c];
      block[0][std::size_t(c)] += apart * apart;
    }
  });
  reference::Moments const m(o.moments);
  m.count() = double(rows);
  for (std::int64_t c = 0; c < channels; ++c) m.mean(c) = double(mean[c]), m.squares(c) = double(squares[c]);
}

template <class T>
void run(Kernels<T> const&, Stream& stream, BatchNorm const& o) {
  using Sum = Accumulator<T>;
  std::int64_t const n = columns_of(o.x);
  Sum const* const mean = o.mean.as<Sum>();
  Sum const* const rstd = o.rstd.as<Sum>();
  T const* const gamma = o.gamma.as<T>();
  T const* const beta = o.beta.as<T>();
  each_row_index(rows_of(o.x), n, stream, [&](std::int64_t r) {
    T const* const x = row<T>(o.x, r);
    T* const y = row<T>(o.y, r);
    for (std::int64_t c = 0; c < n; ++c) y[c] = T(Sum(gamma[c]) * ((Sum(x[c]) - mean[c]) * rstd[c]) + Sum(beta[c]));
  });
}

template <class T>
void run(Kernels<T> const& k, Stream& stream, BatchNormWeight const& o) {
  using Sum = Accumulator<T>;
  Sum const* const mean = o.mean.as<Sum>();
  Sum const* const rstd = o.rstd.as<Sum>();
  ColumnBlocks<T, 2> sums;
  sums.run(k, stream, rows_of(o.x), columns_of(o.x), {o.dgamma.as<Sum>(), o.dbeta.as<Sum>()}, o.write,
           [&](std::int64_t r, std::int64_t from, std::int64_t n, auto& block) {
             T const* const x = row<T>(o.x, r) + from;
             T const* const dy = row<T>(o.dy, r) + from;
             Sum* const dgamma = block[0].data();
             Sum* const dbeta = block[1].data();
             for (std::int64_t c = 0; c < n; ++c) {
               dgamma[c] += Sum(dy[c]) * ((Sum(x[c]) - mean[from + c]) * rstd[from + c]);
               dbeta[c] += Sum(dy[c]);
             }
           });
}

template <class T>
void run(Kernels<T> const&, Stream& stream, BatchNormInput const& o) {
  std::int64_t const rows = rows_of(o.x), n = columns_of(o.x);
  if (rows == 0) return;
  using Sum = Accumulator<T>;
  Sum const* const mean = o.mean.as<Sum>();
  Sum const* const rstd = o.rstd.as<Sum>();
  T const* const gamma = o.gamma.as<T>();
  Sum const count = Sum(reference::Moments(o.moments).count());
  Sum* const shift = image_room<Sum>(2 * n);  // the two means that are subtracted
  Sum* const slope = shift + n;
  for (std::int64_t c = 0; c < n; ++c) shift[c] = o.dbeta.as<Sum>()[c] / count, slope[c] = o.dgamma.as<Sum>()[c] / count;
  each_row_index(rows, n, stream, [&](std::int64_t r) {
    T const* const x = row<T>(o.x, r);
    T const* const dy = row<T>(o.dy, r);
    T* const dx = row<T>(o.dx, r);
    for (std::int64_t c = 0; c < n; ++c)
      dx[c] = T(Sum(gamma[c]) * rstd[c] * (Sum(dy[c]) - shift[c] - (Sum(x[c]) - mean[c]) * rstd[c] * slope[c]));
  });
}

/// What works on one number a channel.
inline void run(MergeMoments const& o) {
  o.mean.dtype == DType::f64 ? reference::merge_moments<double>(o) : reference::merge_moments<float>(o);
}
inline void run(RunningUpdate const& o) {
  o.mean.dtype == DType::f64 ? reference::running_update<double>(o) : reference::running_update<float>(o);
}
inline void run(InverseDeviation const& o) {
  o.rstd.dtype == DType::f64 ? reference::inverse_deviation<double>(o) : reference::inverse_deviation<float>(o);
}

}  // namespace shardmark::cpu
