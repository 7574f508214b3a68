// Case 33 for micro-batches: gradients of a bf16 model grow in fp32, over every Fold.

#include <gtest/gtest.h>

#include "backend/bfloat16.hpp"
#include "model/store.hpp"

namespace shardmark::testing {
namespace {

constexpr int micros = 8;
constexpr UnitId unit{0};
constexpr Segment segment{unit, 0};

/// Gradients of a bias over eight micro-batches whose only rows are 256, 1, 1, 1, 1, 1, 1, 1.
View sum_of_micro_batches(Fold fold) {
  static Pages const pages(1 << 20);
  ModelSpec spec;
  spec.add_unit("u");
  spec.add(unit, "b", {3}, {}, false);
  auto const ops = make_reference_backend();
  auto const stream = ops->stream();
  Ledger ledger;
  Arena arena({pages.data(), pages.bytes(), Place::host, Book::workspace}, ledger);
  arena.watch(*stream);
  ParameterStore store(spec, {unit}, {segment}, {.micros = fold}, {1, micros}, {.compute = DType::bf16}, arena, *ops, *stream);
  Tensor const dy = arena.make(DType::bf16, {1, 3}, Book::activations, *stream);
  for (int leaf = 0; leaf < micros; ++leaf) {
    store.gradients().begin(segment, leaf, *stream);
    ops->run(*stream, Fill{dy.view, leaf == 0 ? 256.0 : 1.0});
    ops->run(*stream, ColumnSum{dy.view, store.gradient(ParamId{0}, 1, 0), store.gradient_write(ParamId{0}, 0)});
    store.gradients().fold(segment, leaf, *stream);
  }
  EXPECT_TRUE(store.gradients().complete(segment));
  return store.gradients().total(segment);
}

TEST(MicroBatchSums, case_33_256_and_seven_ones_are_263_in_fp32) {
  for (Fold fold : {Fold::tree, Fold::loop}) {
    View const sum = sum_of_micro_batches(fold);
    ASSERT_EQ(sum.dtype, DType::f32);
    for (int i = 0; i < 3; ++i) EXPECT_EQ(sum.as<float>()[i], 263);
    EXPECT_EQ(float(bfloat16(*sum.as<float>())), 264);  // rounded once, where anything is stored in bf16
  }
}

}  // namespace
}  // namespace shardmark::testing
