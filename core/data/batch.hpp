#pragma once
// How a HostBatch is made; private to this folder.

#include <cstdint>
#include <span>

#include "data/dataset.hpp"

namespace shardmark {

/// Takes memory for up to `rows` rows, so that fill() allocates nothing.
void reserve(HostBatch& batch, SampleShape const& shape, std::int64_t rows);
/// Reads the samples `ids`, in order. `window_counted` is left alone.
void fill(HostBatch& batch, Dataset const& data, std::int64_t update, std::span<std::int64_t const> ids);
/// Loss terms of all the samples `ids`.
std::int64_t counted_of(Dataset const& data, std::span<std::int64_t const> ids);

}  // namespace shardmark
