#include "validation/ranks/comm/contract.hpp"

#include <fmt/format.h>

#include <cmath>

#include "backend/bfloat16.hpp"
#include "base/sums.hpp"

namespace shardmark::contract {

Rank::Rank(Communicator& group, Region slab) : world(group), me(group.rank()), n(group.size()), arena(slab, ledger) { arena.watch(stream); }

Tensor Rank::make(DType dtype, std::int64_t elements) {
  Tensor const t = arena.make(dtype, {elements}, Book::communication, stream);
  for (std::int64_t i = 0; i < elements; ++i) set(t.view, i, 111);  // what nobody sends
  return t;
}

Tensor Rank::filled(DType dtype, std::int64_t elements, std::function<double(std::int64_t)> const& value) {
  Tensor const t = arena.make(dtype, {elements}, Book::communication, stream);
  for (std::int64_t i = 0; i < elements; ++i) set(t.view, i, value(i));
  return t;
}

double get(View const& v, std::int64_t i) {
  switch (v.dtype) {
    case DType::f64:
      return v.as<double>()[i];
    case DType::f32:
      return v.as<float>()[i];
    case DType::bf16:
      return float(v.as<bfloat16>()[i]);
    case DType::i64:
      return double(v.as<std::int64_t>()[i]);
    case DType::i32:
      return v.as<std::int32_t>()[i];
    case DType::u8:
      return v.as<std::uint8_t>()[i];
  }
  return NAN;
}

void set(View const& v, std::int64_t i, double value) {
  switch (v.dtype) {
    case DType::f64:
      v.as<double>()[i] = value;
      return;
    case DType::f32:
      v.as<float>()[i] = float(value);
      return;
    case DType::bf16:
      v.as<bfloat16>()[i] = bfloat16(float(value));
      return;
    case DType::i64:
      v.as<std::int64_t>()[i] = std::int64_t(value);
      return;
    case DType::i32:
      v.as<std::int32_t>()[i] = std::int32_t(value);
      return;
    case DType::u8:
      v.as<std::uint8_t>()[i] = std::uint8_t(value);
      return;
  }
}

float awkward(int rank, std::int64_t i) {
  Randoms const randoms(7, Purpose::synthetic_data, std::uint64_t(rank));
  return float(std::ldexp(randoms.uniform(2 * std::uint64_t(i)) - 0.5, int(randoms.below(24, 2 * std::uint64_t(i) + 1))));
}

float tree_of_awkward(int first, int last, std::int64_t i) {
  if (last - first == 1) return awkward(first, i);
  int const middle = first + int(left_of(last - first));
  return tree_of_awkward(first, middle, i) + tree_of_awkward(middle, last, i);
}

std::string difference(View const& view, std::function<double(std::int64_t)> const& expected) {
  for (std::int64_t i = 0; i < view.elements(); ++i)
    if (get(view, i) != expected(i))
      return fmt::format("element {} of {}: got {}, expected {}", i, view.elements(), get(view, i), expected(i));
  return "";
}

}  // namespace shardmark::contract
