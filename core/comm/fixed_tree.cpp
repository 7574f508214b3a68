#include "comm/fixed_tree.hpp"

#include <algorithm>
#include <array>
#include <type_traits>

#include "backend/bfloat16.hpp"
#include "base/error.hpp"
#include "base/mutant.hpp"
#include "base/sums.hpp"

namespace shardmark {
namespace {

constexpr std::int64_t block = 512;  // elements at a time: partial sums of all levels stay in the first cache levels
constexpr int levels = 16;           // trees of up to 2^16 ranks

/// Unsigned sums wrap without being undefined; their bits are those of the signed ones.
template <class T>
struct SumType {
  using type = T;
};
template <>
struct SumType<bfloat16> {
  using type = float;
};

/// bf16 rounded at every hop: what the mutant does, and nothing else may.
template <class T, class Sum>
void round_partial_sums(Sum* sums, std::int64_t count) {
  if constexpr (!std::is_same_v<T, Sum>)
    for (std::int64_t i = 0; i < count; ++i) sums[i] = Sum(T(sums[i]));
}

/// One block of the tree over `in`; `spare` holds a block for each level below.
template <class T, class Sum>
void tree_block(std::span<std::byte const* const> in, std::int64_t at, std::int64_t count, Sum* out, Sum* spare) {
  auto leaf = [&](std::size_t i) { return reinterpret_cast<T const*>(in[i]) + at; };
  if (in.size() == 1) {
    T const* a = leaf(0);
    for (std::int64_t i = 0; i < count; ++i) out[i] = Sum(a[i]);
  } else if (in.size() == 2) {
    T const *a = leaf(0), *b = leaf(1);
    for (std::int64_t i = 0; i < count; ++i) out[i] = Sum(a[i]) + Sum(b[i]);
  } else {
    auto const left = mutant("ring_for_tree") ? in.size() - 1 : std::size_t(left_of(std::int64_t(in.size())));
    tree_block<T>(in.first(left), at, count, out, spare);
    tree_block<T>(in.subspan(left), at, count, spare, spare + block);
    for (std::int64_t i = 0; i < count; ++i) out[i] += spare[i];
  }
  if (mutant("bf16_accumulation")) round_partial_sums<T>(out, count);
}

template <class T>
void sum(std::span<std::byte const* const> in, std::byte* out, std::int64_t elements) {
  using Sum = typename SumType<T>::type;
  std::array<Sum, block*(levels + 1)> partial;
  auto* to = reinterpret_cast<T*>(out);
  for (std::int64_t at = 0; at < elements; at += block) {
    std::int64_t const count = std::min(block, elements - at);
    tree_block<T>(in, at, count, partial.data(), partial.data() + block);
    for (std::int64_t i = 0; i < count; ++i) to[at + i] = T(partial[std::size_t(i)]);
  }
}

}  // namespace

void sum_fixed_tree(DType dtype, std::span<std::byte const* const> in, std::byte* out, std::int64_t elements) {
  expect(!in.empty() && tree_depth(std::int64_t(in.size())) <= levels, "a sum over no rank, or over too many");
  switch (dtype) {
    case DType::f64:
      return sum<double>(in, out, elements);
    case DType::f32:
      return sum<float>(in, out, elements);
    case DType::bf16:
      return sum<bfloat16>(in, out, elements);
    case DType::i64:
      return sum<std::uint64_t>(in, out, elements);
    case DType::i32:
      return sum<std::uint32_t>(in, out, elements);
    case DType::u8:
      return sum<std::uint8_t>(in, out, elements);
  }
}

}  // namespace shardmark
