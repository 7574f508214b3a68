#include "comm/fixed_tree.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "backend/bfloat16.hpp"
#include "base/random.hpp"
#include "base/sums.hpp"
#include "comm/slices.hpp"

namespace shardmark {
namespace {

float value(int rank, std::int64_t i) {
  return float(Randoms(3, Purpose::synthetic_data, std::uint64_t(rank)).normal(std::uint64_t(i)) * (1 << rank % 7));
}

float by_definition(int first, int last, std::int64_t i) {
  if (last - first == 1) return value(first, i);
  int const middle = first + int(left_of(last - first));
  return by_definition(first, middle, i) + by_definition(middle, last, i);
}

TEST(FixedTree, has_the_bits_of_the_definition_for_any_number_of_ranks) {
  constexpr std::int64_t elements = 1500;  // more than two blocks
  for (int ranks : {1, 2, 3, 4, 5, 6, 7, 8, 13, 16, 17}) {
    std::vector<std::vector<float>> data(static_cast<std::size_t>(ranks), std::vector<float>(elements));
    std::vector<std::byte const*> in;
    for (int r = 0; r < ranks; ++r) {
      for (std::int64_t i = 0; i < elements; ++i) data[std::size_t(r)][std::size_t(i)] = value(r, i);
      in.push_back(reinterpret_cast<std::byte const*>(data[std::size_t(r)].data()));
    }
    float* const out = data[std::size_t(ranks / 2)].data();  // in place of one of them
    sum_fixed_tree(DType::f32, in, reinterpret_cast<std::byte*>(out), elements);
    for (std::int64_t i = 0; i < elements; ++i) ASSERT_EQ(out[i], by_definition(0, ranks, i)) << ranks << " ranks, element " << i;
  }
}

TEST(FixedTree, case_33_256_and_seven_ones_are_264_in_bf16) {
  std::vector<bfloat16> values{bfloat16(256)};
  values.resize(8, bfloat16(1));
  std::vector<std::byte const*> in;
  for (bfloat16 const& v : values) in.push_back(reinterpret_cast<std::byte const*>(&v));
  bfloat16 out;
  sum_fixed_tree(DType::bf16, in, reinterpret_cast<std::byte*>(&out), 1);
  EXPECT_EQ(float(out), 264);  // 263 in fp32; rounded at every hop it would stay 256
}

TEST(FixedTree, integers_wrap) {
  std::int32_t const a = 2147483647, b = 1;
  std::byte const* const in[] = {reinterpret_cast<std::byte const*>(&a), reinterpret_cast<std::byte const*>(&b)};
  std::int32_t out = 0;
  sum_fixed_tree(DType::i32, in, reinterpret_cast<std::byte*>(&out), 1);
  EXPECT_EQ(out, -2147483647 - 1);
}

TEST(Slices, cover_all_elements_once_and_differ_by_one_at_most) {
  for (std::int64_t elements : {0L, 1L, 3L, 4L, 57L, (1L << 31) + 5})
    for (int pieces : {1, 2, 3, 4, 7}) {
      std::int64_t at = 0;
      for (int p = 0; p < pieces; ++p) {
        Range const slice = piece_of(elements, pieces, p);
        EXPECT_EQ(slice.begin, at);
        EXPECT_GE(slice.size(), elements / pieces);
        EXPECT_LE(slice.size(), elements / pieces + 1);
        at = slice.end;
      }
      EXPECT_EQ(at, elements);
    }
}

TEST(Slices, case_31_chunks_cover_more_than_an_int_counts) {
  for (std::int64_t limit : {7L, 1L << 20, 1L << 30, (1L << 31) - 1}) {
    std::int64_t const elements = limit < (1 << 20) ? 1003 : (1L << 31) + 5;
    Range const whole{11, 11 + elements};
    std::int64_t at = whole.begin;
    for (std::int64_t i = 0; i < chunk_count(elements, limit); ++i) {
      Range const chunk = nth_chunk(whole, limit, i);
      EXPECT_EQ(chunk.begin, at);
      EXPECT_GT(chunk.size(), 0);
      EXPECT_LE(chunk.size(), limit);
      at = chunk.end;
    }
    EXPECT_EQ(at, whole.end);
  }
  EXPECT_EQ(chunk_count(0, 7), 1);  // an empty message is one message
}

}  // namespace
}  // namespace shardmark
