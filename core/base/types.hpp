#pragma once
// Words that every folder shares: element types, places, books, axes, collectives.

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace shardmark {

enum class DType : std::uint8_t { f64, f32, bf16, i64, i32, u8 };

/// The type in which sums of `type` are kept: bf16 accumulates in fp32.
constexpr DType accumulator(DType type) { return type == DType::bf16 ? DType::f32 : type; }

/// Bytes of one element.
constexpr std::size_t width(DType type) {
  switch (type) {
    case DType::f64:
    case DType::i64:
      return 8;
    case DType::f32:
    case DType::i32:
      return 4;
    case DType::bf16:
      return 2;
    case DType::u8:
      return 1;
  }
  return 0;
}

/// Unit roundoff of a floating type (half a unit in the last place of 1).
constexpr double unit_roundoff(DType type) {
  switch (type) {
    case DType::f64:
      return 0x1p-53;
    case DType::f32:
      return 0x1p-24;
    case DType::bf16:
      return 0x1p-8;
    default:
      return 0;
  }
}

std::string_view name(DType type);

/// Axes of the mesh; a set of axes is the OR of its members.
enum class Axis : std::uint8_t { data = 1, pipeline = 2, tensor = 4 };
using Axes = std::uint8_t;
constexpr Axes operator|(Axis a, Axis b) { return Axes(Axes(a) | Axes(b)); }
constexpr Axes axes(Axis a) { return Axes(a); }

enum class Place : std::uint8_t { host, node_shared, pinned, device };

/// What a byte is for; the ledger's categories.
enum class Book : std::uint8_t { parameters, gradients, optimizer, activations, versions, communication, workspace, data, reference };
inline constexpr std::size_t books = 9;
std::string_view name(Book book);

enum class Collective : std::uint8_t { broadcast, all_reduce, reduce_scatter, all_gather, all_to_all, gather, scatter };
std::string_view name(Collective collective);

/// Whether an operation replaces its output or adds to it.
enum class Write : std::uint8_t { overwrite, accumulate };

}  // namespace shardmark
