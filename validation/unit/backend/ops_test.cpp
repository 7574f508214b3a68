// Operations as data: what they touch, what they cost, what is refused.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "backend/op_access.hpp"
#include "validation/unit/backend/op_cases.hpp"

namespace shardmark {
namespace {

/// Views on one buffer that is large enough for all tests here.
class Ops : public testing::Test {
 protected:
  View at(std::int64_t first, std::initializer_list<std::int64_t> shape, DType type = DType::f32) {
    return view_at(reinterpret_cast<std::byte*>(memory.data() + first), nullptr, type, Shape{shape.begin(), shape.size()});
  }
  static void expect_refusal(Op const& op, std::string const& words) {
    try {
      validate(op);
      FAIL() << name(op) << " was not refused: " << words;
    } catch (Error const& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr(std::string(name(op))));
      EXPECT_THAT(error.what(), testing::HasSubstr(words));
    }
  }
  Matmul product() { return {.a = at(0, {4, 3}), .b = at(100, {3, 5}), .c = at(200, {4, 5}), .bias = {}, .aux = {}}; }
  std::vector<double> memory = std::vector<double>(4096);
};

TEST_F(Ops, AccumulatedOutputsAreReadToo) {
  Op op = product();
  EXPECT_EQ(reads(op).count, 2u);
  EXPECT_EQ(writes(op).count, 1u);
  std::get<Matmul>(op).write = Write::accumulate;
  EXPECT_EQ(reads(op).count, 3u);
  EXPECT_EQ(bytes(op), 4 * (12 + 15 + 20 + 20));
}

TEST_F(Ops, EveryOperationReadsOrWritesAndNamesItself) {
  std::vector<std::string_view> names;
  for (std::size_t kind = 0; kind < std::variant_size_v<Op>; ++kind) names.push_back(name_of_kind(kind));
  for (cases::OpCase const& c : cases::op_cases(DType::f32, {}, 1)) {
    EXPECT_GT(writes(c.op).count, 0u) << c.label;
    EXPECT_GE(flops(c.op), 0) << c.label;
    EXPECT_GT(bytes(c.op), 0) << c.label;
    EXPECT_EQ(c.label.substr(0, name(c.op).size()), name(c.op));
    std::erase(names, name(c.op));
  }
  EXPECT_THAT(names, testing::IsEmpty()) << "operations without a case";
}

TEST_F(Ops, FlopsOfProductsAreExact) {
  EXPECT_EQ(flops(product()), 2 * 4 * 3 * 5);
  View const q = at(0, {2, 8, 3, 4});
  Attention const attention{q, q, q, q, at(0, {2, 3, 8}), 1};
  // Two products over the causal half with its diagonal: 36 of 64 pairs.
  EXPECT_EQ(flops(attention), 2 * 2 * (2 * 3 * 36 * 4));
  EXPECT_EQ(flops(AttentionInput{q, q, q, q, at(0, {2, 3, 8}), q, q, q, q, 1}), 2.5 * flops(attention));
}

TEST_F(Ops, MemoryIsMarkedByStream) {
  Region region;
  Matmul op = product();
  op.c.region = &region;
  mark_touched(HostStream(3), op);
  mark_touched(HostStream(5), op);
  EXPECT_EQ(region.touched_by, 1u << 3 | 1u << 5);
}

TEST_F(Ops, RefusesWhatItCantCompute) {
  validate(product());
  Matmul op = product();
  op.b = at(100, {4, 5});
  expect_refusal(op, "wrong shape");
  op = product();
  op.b.dtype = DType::f64;
  expect_refusal(op, "wrong type");
  op = product();
  op.a.stride[1] = 2;
  expect_refusal(op, "dense last dimension");
  op = product();
  op.b = {};
  expect_refusal(op, "must be there");
  op = product();
  op.epilogue = Epilogue::bias;
  expect_refusal(op, "bias");
  op.bias = at(300, {5});
  op.write = Write::accumulate;
  expect_refusal(op, "overwrites");
  expect_refusal(SumTree{{}, at(0, {3})}, "at least one");
  expect_refusal(Copy{at(0, {3}), at(10, {3}, DType::i32)}, "cast");
  expect_refusal(Dropout{at(0, {2, 3}), at(10, {2, 3}), at(20, {2, 2}, DType::i64), 1.0}, "[0, 1)");
  expect_refusal(ColumnSum{at(0, {2, 3}, DType::bf16), at(10, {3}, DType::bf16)}, "wrong type");
  SgdUpdate sgd{at(0, {3}), at(10, {3}), {}, at(0, {3}), {}, at(20, {scalars}, DType::f64), 0.9};
  expect_refusal(sgd, "momentum goes with a factor");
}

TEST_F(Ops, OutputsMayBeInputsOnlyWhereTheOperationSaysSo) {
  Matmul op = product();
  op.c = at(100, {4, 5});
  expect_refusal(op, "overlaps");
  View const x = at(0, {2, 3}), dy = at(10, {2, 3});
  validate(GeluInput{x, dy, dy});
  expect_refusal(GeluInput{x, dy, x}, "overlaps");
  expect_refusal(Gelu{x, x}, "overlaps");
  std::array<View, 2> const in{x, dy};
  validate(SumTree{in, dy});
  expect_refusal(SumTree{in, at(11, {2, 3})}, "overlaps");
  AdamWUpdate adam{x, dy, at(20, {6}), at(30, {6}), x, {}, at(40, {scalars}, DType::f64)};
  adam.weight = adam.out = at(0, {6}), adam.gradient = at(10, {6});
  validate(adam);
  adam.out = at(10, {6});
  expect_refusal(adam, "overlaps");
}

TEST_F(Ops, SlicesSideBySideShareNothing) {
  View const whole = at(0, {6, 12});
  View const left = slice(whole, 1, 0, 4), middle = slice(whole, 1, 4, 8), wide = slice(whole, 1, 3, 9);
  EXPECT_TRUE(overlap(left, middle));
  EXPECT_FALSE(share_elements(left, middle));
  EXPECT_FALSE(share_elements(middle, left));
  EXPECT_TRUE(share_elements(left, wide));
  EXPECT_TRUE(share_elements(middle, wide));
  EXPECT_TRUE(share_elements(whole, middle));
  EXPECT_FALSE(share_elements(slice(left, 0, 0, 3), slice(middle, 0, 2, 6)));
  // q, k and v as [batch, positions, heads, width] in one buffer.
  View q = at(0, {2, 3, 2, 2});
  q.stride = {36, 12, 2, 1};
  View k = q;
  k.data += 4 * sizeof(float);
  EXPECT_FALSE(share_elements(q, k));
  View across = q;
  across.data += 3 * sizeof(float);
  EXPECT_TRUE(share_elements(q, across));
}

TEST(Pages, KeepZeroedMemory) {
  Pages pages(5 << 20);
  EXPECT_EQ(pages.bytes(), std::size_t{5} << 20);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(pages.data()) % 4096, 0u);
  EXPECT_EQ(pages.data()[pages.bytes() - 1], std::byte{0});
  pages.data()[0] = std::byte{1};
  Pages const moved(std::move(pages));
  EXPECT_EQ(moved.data()[0], std::byte{1});
  EXPECT_NE(Pages(0).data(), nullptr);
}

TEST(Cuda, IsNamedWhenItIsNotBuilt) { EXPECT_THROW(make_cuda_backend(), not_built); }

}  // namespace
}  // namespace shardmark
