#pragma once
// A slice of a full tensor as byte ranges; private to this folder.

#include <span>
#include <utility>

#include "base/error.hpp"
#include "model/spec.hpp"

namespace shardmark {

inline std::int64_t elements_of(std::span<std::int64_t const> shape) {
  std::int64_t n = 1;
  for (std::int64_t extent : shape) n *= extent;
  return n;
}

/// Calls f(first byte in the full tensor, first byte in the piece, bytes) for each contiguous run of a slice.
/// @param bytes  of the whole piece, as the caller holds it: must be those of the slice
template <class F>
void each_run(std::span<std::int64_t const> full, Slice const& slice, std::size_t element_bytes, std::size_t bytes, F&& f) {
  std::int64_t outer = 1, extent = 1, inner = elements_of(full), begin = 0, end = 1;  // all of it
  if (slice.dim < 0 && slice.end > 0) {
    expect(slice.begin >= 0 && slice.begin < slice.end && slice.end <= inner, "elements of the tensor");
    begin = slice.begin;
    end = slice.end;
    extent = std::exchange(inner, 1);
  }
  if (slice.dim >= 0) {
    std::size_t const dim = std::size_t(slice.dim);
    expect(dim < full.size() && slice.begin >= 0 && slice.begin <= slice.end && slice.end <= full[dim], "a slice of the tensor");
    outer = elements_of(full.first(dim));
    extent = full[dim];
    inner = elements_of(full.subspan(dim + 1));
    begin = slice.begin;
    end = slice.end;
  }
  std::int64_t const row = inner * std::int64_t(element_bytes), run = (end - begin) * row;
  expect(std::int64_t(bytes) == outer * run, "a piece as large as its slice");
  for (std::int64_t o = 0; o < outer; ++o) f((o * extent + begin) * row, o * run, std::size_t(run));
}

}  // namespace shardmark
