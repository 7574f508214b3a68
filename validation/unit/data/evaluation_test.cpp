#include <gtest/gtest.h>

#include "fixtures.hpp"

namespace shardmark {
namespace {

using test::ids_of;
using test::Listed;

// Only samples 0 and 1 are right. A sampler that pads by repeating its first samples would report 4 of 12.
TEST(Evaluation, case_05_AccuracyIsNotBiasedByPadding) {
  Listed const data = Listed::of_size(10);
  std::int64_t correct = 0, seen = 0, denominator = 0;
  for (int rank = 0; rank < 3; ++rank) {
    Evaluation evaluation(data, 1, 3, rank);
    for (std::int64_t round = 0; round < evaluation.rounds(); ++round) {
      HostBatch const& batch = evaluation.read(round);
      for (std::int64_t id : ids_of(batch)) correct += id < 2 ? 1 : 0;
      seen += batch.rows;
      denominator = batch.window_counted;
    }
  }
  EXPECT_EQ(seen, 10);
  EXPECT_DOUBLE_EQ(double(correct) / double(denominator), 0.2);
}

TEST(Evaluation, EverySampleOnceAndTheSameBatchesAtAnyRankCount) {
  for (std::int64_t n : {1, 2, 9, 10, 64}) {
    Listed const data = Listed::of_size(n);
    for (std::int64_t rows : {1, 3, 4, 100}) {
      for (int ranks : {1, 2, 3, 7, 13}) {
        std::vector<std::vector<std::int64_t>> batches;
        for (std::int64_t round = 0; round < Evaluation(data, rows, ranks, 0).rounds(); ++round) {
          for (int rank = 0; rank < ranks; ++rank) {
            auto const ids = ids_of(Evaluation(data, rows, ranks, rank).read(round));
            if (!ids.empty()) batches.push_back(ids);
          }
        }
        std::int64_t expected = 0;
        for (std::size_t b = 0; b < batches.size(); ++b) {
          EXPECT_EQ(std::int64_t(batches[b].size()), std::min(rows, n - std::int64_t(b) * rows));
          for (std::int64_t id : batches[b]) EXPECT_EQ(id, expected++);
        }
        EXPECT_EQ(expected, n);
      }
    }
  }
}

TEST(Evaluation, AllRanksTakeEquallyManyRounds) {
  Listed const data = Listed::of_size(10);
  for (int rank = 0; rank < 4; ++rank) EXPECT_EQ(Evaluation(data, 3, 4, rank).rounds(), 1);
  for (int rank = 0; rank < 3; ++rank) EXPECT_EQ(Evaluation(data, 3, 3, rank).rounds(), 2);
}

TEST(Evaluation, DenominatorIsTheWholeDataSets) {
  Listed const data({3, 1, 4, 1, 5});
  for (int rank = 0; rank < 2; ++rank) EXPECT_EQ(Evaluation(data, 2, 2, rank).read(0).window_counted, 14);
  EXPECT_EQ(Evaluation(data, 2, 2, 1).read(0).counted, 5);
}

}  // namespace
}  // namespace shardmark
