#pragma once
// The arena: one slab of memory per rank, first fit, so that the same sequence of calls gives the same addresses.
// After warm-up it takes nothing from the system: its book-keeping comes from a pool.

#include <cstdint>
#include <initializer_list>
#include <memory>

#include "tensor/ledger.hpp"
#include "tensor/stream.hpp"
#include "tensor/view.hpp"

namespace shardmark {

using Storage = std::shared_ptr<Region>;

/// A view that keeps its memory alive. Copies share the memory.
struct Tensor {
  Storage storage;
  View view;
  explicit operator bool() const { return bool(view); }
};

/// The same memory seen through another view (slice, reshape).
inline Tensor with_view(Tensor const& tensor, View const& view) { return {tensor.storage, view}; }

class Arena {
 public:
  /// @param slab   memory to hand out; stays the caller's. A meta slab is reserved but never touched.
  /// @param ledger outlives the arena.
  Arena(Region slab, Ledger& ledger);

  /// Memory for a contiguous tensor, uninitialised, aligned to 64 bytes. Work that other streams still do on the memory's
  /// last use is waited for by `first_use`. @throws RankFailure when the slab is full, with needed and free bytes.
  Tensor make(DType dtype, Shape shape, Book book, Stream& first_use);
  Tensor make(DType dtype, std::initializer_list<std::int64_t> shape, Book book, Stream& first_use) {
    return make(dtype, Shape{shape.begin(), shape.size()}, book, first_use);
  }

  /// Streams that work on this arena's memory; each must be named once before it is used.
  void watch(Stream& stream);

  /// Hash of all calls since the last `restart_hash`; equal in every step after warm-up.
  std::uint64_t sequence_hash() const;
  void restart_hash();
  /// Highest byte of the slab ever used: what a slab must hold for this program.
  std::size_t high_water() const;
  Ledger& ledger() const;

 private:
  struct State;
  std::shared_ptr<State> state_;
};

}  // namespace shardmark
