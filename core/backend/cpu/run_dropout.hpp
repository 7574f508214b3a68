#pragma once
// Dropout: a piece's mask, then the piece.

#include "backend/cpu/run.hpp"
#include "backend/dropout_key.hpp"
#include "base/philox_counter.hpp"

namespace shardmark::cpu {

template <class T>
void run_dropout(InstructionSet const& set, Kernels<T> const& k, Stream& stream, Dropout const& o) {
  constexpr std::int64_t most = 4096;
  float keep[most];
  using Sum = typename Kernels<T>::Sum;
  Sum const scale = Sum(1 / (1 - o.p));
  std::int64_t const samples = o.x.shape[0], columns = columns_of(o.x);
  std::int64_t const lines = samples == 0 ? 0 : rows_of(o.x) / samples;
  each_row_index(samples * lines, columns, stream, [&](std::int64_t r) {
    std::int64_t const* const key = o.samples.as<std::int64_t>() + 2 * (r / lines);
    KeepCall const call{.seed = o.seed,
                        .stream = philox_stream(Purpose::dropout, dropout_stream(o.layer, key[0], key[1])),
                        .threshold = dropout_threshold(o.p)};
    for (std::int64_t begin = 0; begin < columns; begin += most) {
      std::int64_t const n = std::min(most, columns - begin);
      set.keep(call, dropout_element(o, r % lines, begin, columns), keep, n);
      k.dropout(row<T>(o.x, r) + begin, keep, scale, row<T>(o.y, r) + begin, n);
    }
  });
}

}  // namespace shardmark::cpu
