// A table and a softmax cross-entropy cut along the vocabulary, by the reference: the slices together are the whole.

#include <gtest/gtest.h>

#include "base/random.hpp"
#include "validation/unit/backend/op_cases.hpp"

namespace shardmark {
namespace {

View integers(std::vector<std::int32_t>& values) {
  std::int64_t const n = std::int64_t(values.size());
  return view_at(reinterpret_cast<std::byte*>(values.data()), nullptr, DType::i32, Shape{&n, 1});
}

struct Loss {
  std::vector<double> tally, dlogits;
};

class SlicedVocabulary : public testing::Test {
 protected:
  Dense drawn(std::int64_t rows, std::int64_t columns) {
    Dense out{rows, columns};
    Randoms const random(3, Purpose::synthetic_data, next_++);
    std::uint64_t i = 0;
    out.apply([&](double) { return 3 * random.normal(i++); });
    return out;
  }
  Loss whole(Dense& logits, std::vector<std::int32_t>& target, double scale) {
    Dense tally{3}, dlogits(logits.view().dims());
    bench_.run(CrossEntropy{logits.view(), integers(target), tally.view(), dlogits.view(), scale});
    return {tally.values(), dlogits.values()};
  }
  /// Slices [cuts[s], cuts[s + 1]) of the columns, each in turn what a rank would do; every slice's tally is the whole one.
  Loss sliced(Dense& logits, std::vector<std::int32_t>& target, std::vector<std::int64_t> const& cuts, double scale) {
    std::int64_t const rows = logits.dim(0), slices = std::int64_t(cuts.size()) - 1;
    Dense parts{slices, rows, softmax_part_size}, dlogits(logits.view().dims());
    auto const columns = [&](Dense& of, std::int64_t s) { return slice(of.view(), 1, cuts[std::size_t(s)], cuts[std::size_t(s) + 1]); };
    for (std::int64_t s = 0; s < slices; ++s)
      bench_.run(SoftmaxPart{columns(logits, s), integers(target), slice(parts.view(), 0, s, s + 1), cuts[std::size_t(s)]});
    std::vector<double> tally;
    for (std::int64_t s = 0; s < slices; ++s) {
      Dense own{3};
      bench_.run(SlicedCrossEntropy{columns(logits, s), integers(target), parts.view(), own.view(), columns(dlogits, s),
                                    cuts[std::size_t(s)], scale});
      EXPECT_TRUE(s == 0 || own.values() == tally) << s;
      tally = own.values();
    }
    return {tally, dlogits.values()};
  }
  void expect_equal(Loss const& a, Loss const& b) {
    for (std::size_t i = 0; i < 3; ++i) EXPECT_NEAR(a.tally[i], b.tally[i], 1e-13 * (1 + std::abs(b.tally[i]))) << i;
    ASSERT_EQ(a.dlogits.size(), b.dlogits.size());
    for (std::size_t i = 0; i < a.dlogits.size(); ++i) EXPECT_NEAR(a.dlogits[i], b.dlogits[i], 1e-15) << i;
  }

  std::unique_ptr<Backend> backend_ = make_reference_backend();
  HostStream stream_{0};
  Bench bench_{*backend_, stream_};
  std::uint64_t next_ = 0;
};

TEST_F(SlicedVocabulary, EqualsTheWholeHoweverItIsCut) {
  for (std::vector<std::int64_t> const& cuts :
       std::vector<std::vector<std::int64_t>>{{0, 61}, {0, 31, 61}, {0, 21, 41, 61}, {0, 16, 31, 46, 61}, {0, 1, 1, 60, 61}, {0, 0, 61}}) {
    Dense logits = drawn(5, 61);
    std::vector<std::int32_t> target{0, 60, 31, -1, 17};
    expect_equal(sliced(logits, target, cuts, 0.25), whole(logits, target, 0.25));
  }
}

TEST_F(SlicedVocabulary, TheLowestOfEqualLogitsWinsAcrossSlices) {
  Dense logits{3, 4};
  logits.values() = {0, 2, 2, 1, 0, 2, 2, 1, 7, 7, 7, 7};
  std::vector<std::int32_t> target{1, 2, 3};
  EXPECT_EQ(sliced(logits, target, {0, 2, 4}, 1).tally[2], 1);
  EXPECT_EQ(whole(logits, target, 1).tally[2], 1);
}

TEST_F(SlicedVocabulary, LogitsFarApartNeitherOverflowNorVanish) {
  Dense logits{1, 4};
  logits.values() = {-2000, -2001, 3000, 2999};
  std::vector<std::int32_t> target{3};
  EXPECT_NEAR(sliced(logits, target, {0, 2, 4}, 1).tally[0], 1 + std::log1p(std::exp(-1.0)), 1e-12);
}

TEST_F(SlicedVocabulary, ATargetOutsideAllSlicesIsRefused) {
  Dense logits = drawn(2, 5);
  std::vector<std::int32_t> target{1, 5};
  EXPECT_THROW(sliced(logits, target, {0, 3, 5}, 1), Error);
}

/// Five logits in room for six: the sixth takes no part where slices end at the fifth. Where they don't, the loss is ln 6.
TEST_F(SlicedVocabulary, case_46_padding_columns_take_no_part) {
  Dense logits{2, 6};
  std::vector<std::int32_t> target{4, 0};
  Loss const right = sliced(logits, target, {0, 3, 5}, 1);
  EXPECT_NEAR(right.tally[0] / 2, 1.6094, 5e-5);
  EXPECT_NEAR(right.dlogits[4], -0.8, 1e-15);
  EXPECT_EQ(right.dlogits[5], 0);
  EXPECT_NEAR(sliced(logits, target, {0, 3, 6}, 1).tally[0] / 2, 1.7918, 5e-5);
}

TEST_F(SlicedVocabulary, SlicesOfATableAddUpToItBitForBit) {
  Dense table = drawn(7, 3), positions = drawn(4, 3), whole{2, 4, 3}, sum{2, 4, 3};
  std::vector<std::int32_t> ids{0, 6, 3, 3, 2, 4, 0, 5};
  View const tokens = reshape(integers(ids), {2, 4});
  bench_.run(Embedding{tokens, table.view(), positions.view(), whole.view()});
  Dense dy = drawn(8, 3), dtable{7, 3}, dslices{7, 3};
  View const g = reshape(dy.view(), {2, 4, 3});
  bench_.run(EmbeddingWeight{tokens, g, dtable.view()});
  for (auto const& [begin, end] : {std::pair<std::int64_t, std::int64_t>{0, 3}, {3, 3}, {3, 7}}) {
    Dense part{2, 4, 3};
    bench_.run(Embedding{tokens, slice(table.view(), 0, begin, end), positions.view(), part.view(), {begin, 7}});
    std::array<View, 2> const both{sum.view(), part.view()};
    bench_.run(SumTree{both, sum.view()});
    bench_.run(EmbeddingWeight{tokens, g, slice(dslices.view(), 0, begin, end), Write::overwrite, {begin, 7}});
  }
  EXPECT_EQ(sum.values(), whole.values());
  EXPECT_EQ(dslices.values(), dtable.values());
  ids[2] = 7;
  Dense part{2, 4, 3};
  EXPECT_THROW(bench_.run(Embedding{tokens, slice(table.view(), 0, 0, 3), {}, part.view(), {0, 7}}), Error);
}

}  // namespace
}  // namespace shardmark
