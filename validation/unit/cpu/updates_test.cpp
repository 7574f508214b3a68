// Updates use separate multiplications and additions, square root and division: all exactly rounded, so every backend and every
// instruction set gives the reference's bits.

#include "workbench.hpp"

namespace shardmark {
namespace {

struct UpdatesOn : testing::OnInstructionSet {
  View scalars(double update, double skip) {
    View const s = bench.random(DType::f64, {shardmark::scalars}, 0, 0);
    auto set = [&](Scalar which, double value) { s.as<double>()[std::size_t(which)] = value; };
    set(Scalar::learning_rate, 0.037);
    set(Scalar::clip, 0.61);
    set(Scalar::update, update);
    set(Scalar::skip, skip);
    return s;
  }
};

constexpr std::int64_t sizes[] = {0, 1, 7, 16, 33, 100};

TEST_P(UpdatesOn, SgdHasTheReferencesBits) {
  for (DType const type : testing::floats)
    for (std::int64_t const n : sizes)
      for (double const factor : {0.0, 0.9})
        for (bool const nesterov : {false, true})
          for (double const skip : {0.0, 1.0}) {
            SgdUpdate op{.weight = bench.random(type, {n}),
                         .gradient = bench.random(type, {n}),
                         .momentum = {},
                         .out = bench.make(type, {n}),
                         .compute = bench.make(DType::f32, {n}),
                         .scalars = scalars(3, skip)};
            op.factor = factor;
            op.nesterov = nesterov && factor > 0;
            op.decay = 0.1;
            op.decay_from = n / 5;
            op.decay_to = n - n / 4;
            if (factor > 0) op.momentum = bench.random(type, {n});
            expect_like_reference(op, "sgd " + std::string(name(type)) + " " + std::to_string(n), 0);
          }
}

TEST_P(UpdatesOn, AdamWHasTheReferencesBits) {
  for (DType const type : testing::floats)
    for (std::int64_t const n : sizes)
      for (double const update : {1.0, 2.0, 1000.0})
        for (double const skip : {0.0, 1.0}) {
          AdamWUpdate op{.weight = bench.random(type, {n}),
                         .gradient = bench.random(type, {n}),
                         .first = bench.random(type, {n}),
                         .second = bench.random(type, {n}, 0, 1),
                         .out = bench.make(type, {n}),
                         .compute = {},
                         .scalars = scalars(update, skip)};
          op.decay = 0.1;
          op.decay_from = n / 5;
          op.decay_to = n - n / 4;
          expect_like_reference(op, "adamw " + std::string(name(type)) + " " + std::to_string(n), 0);
        }
}

TEST_P(UpdatesOn, InPlaceEqualsOutOfPlace) {
  AdamWUpdate op{.weight = bench.random(DType::f32, {77}),
                 .gradient = bench.random(DType::f32, {77}),
                 .first = bench.random(DType::f32, {77}),
                 .second = bench.random(DType::f32, {77}, 0, 1),
                 .out = bench.make(DType::f32, {77}),
                 .compute = {},
                 .scalars = scalars(5, 0)};
  AdamWUpdate in_place = op;
  in_place.weight = in_place.out = bench.copy(op.weight);
  in_place.first = bench.copy(op.first);
  in_place.second = bench.copy(op.second);
  run(op);
  run(in_place);
  testing::expect_same_bits(op.out, in_place.out, "adamw in place");
}

TEST_P(UpdatesOn, DecideEqualsReference) {
  Decide const op{bench.random(DType::f64, {1}, 4, 5), bench.random(DType::f64, {4}, 0, 1), scalars(3, 0), 1.0, 0.01};
  expect_like_reference(op, "decide", 0);
}

SHARDMARK_ON_EVERY_INSTRUCTION_SET(UpdatesOn);

}  // namespace
}  // namespace shardmark
