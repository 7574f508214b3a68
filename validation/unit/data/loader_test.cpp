#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "base/error.hpp"
#include "fixtures.hpp"

namespace shardmark {
namespace {

using test::ids_of;
using test::Listed;
using test::values;

std::vector<std::int64_t> sizes_of_window(Loader& loader) {
  std::vector<std::int64_t> sizes;
  for (int k = 0; k < loader.micros_per_update(); ++k) sizes.push_back(loader.next().rows);
  return sizes;
}

std::vector<std::int64_t> ids_of_window(Loader& loader) {
  std::vector<std::int64_t> all;
  for (int k = 0; k < loader.micros_per_update(); ++k) {
    for (std::int64_t id : ids_of(loader.next())) all.push_back(id);
  }
  return all;
}

TEST(Loader, SplitsNestedReplicasThenMicros) {
  Listed const data = Listed::of_size(10);
  Loader loader(data, Sampler(10, 10, 1), {.replicas = 2, .micros = 3, .all_replicas = true}, 0);
  EXPECT_EQ(sizes_of_window(loader), (std::vector<std::int64_t>{2, 2, 1, 2, 2, 1}));
}

// case 43: chunking yields fewer pieces than asked.
TEST(Loader, case_43_ExactlyAsManyMicroBatchesAsAsked) {
  Listed const five = Listed::of_size(5);
  Loader loader(five, Sampler(5, 5, 1), {.micros = 4}, 0);
  EXPECT_EQ(sizes_of_window(loader), (std::vector<std::int64_t>{2, 1, 1, 1}));
  for (int samples = 1; samples <= 17; ++samples) {
    Listed const data = Listed::of_size(samples);
    for (int micros = 1; micros <= samples; ++micros) {
      Loader each(data, Sampler(samples, samples, 1), {.micros = micros}, 0);
      auto const sizes = sizes_of_window(each);
      EXPECT_EQ(int(sizes.size()), micros);
      EXPECT_EQ(std::accumulate(sizes.begin(), sizes.end(), std::int64_t(0)), samples);
      EXPECT_EQ(sizes.back(), samples / micros) << "none is empty, and they differ by one at most";
      EXPECT_LE(sizes.front(), sizes.back() + 1);
    }
  }
}

TEST(Loader, case_50_FewerSamplesThanReplicas) {
  Listed const data = Listed::of_size(3);
  std::vector<std::int64_t> rows;
  for (int replica = 0; replica < 4; ++replica) {
    Loader loader(data, Sampler(3, 3, 1), {.replicas = 4, .replica = replica}, 0);
    HostBatch const& batch = loader.next();
    rows.push_back(batch.rows);
    EXPECT_EQ(batch.window_counted, 3);
  }
  EXPECT_EQ(rows, (std::vector<std::int64_t>{1, 1, 1, 0}));
}

// The union over the ranks is the serial twin's list, in order, whatever the number of ranks.
TEST(Loader, BatchesAreIndependentOfTheRankCount) {
  Listed const data = Listed::of_size(23);
  Sampler const sampler(23, 10, 77);
  for (std::int64_t update = 0; update < 6; ++update) {
    std::vector<std::int64_t> room(10);
    auto const used = sampler.samples_of(update, room);
    std::vector<std::int64_t> const expected(used.begin(), used.end());
    for (int replicas : {1, 2, 3, 4, 7}) {
      std::vector<std::int64_t> joined;
      for (int r = 0; r < replicas; ++r) {
        Loader loader(data, sampler, {.replicas = replicas, .replica = r, .micros = 3}, 0, update);
        for (std::int64_t id : ids_of_window(loader)) joined.push_back(id);
      }
      EXPECT_EQ(joined, expected);
      Loader twin(data, sampler, {.replicas = replicas, .micros = 3, .all_replicas = true}, 0, update);
      EXPECT_EQ(ids_of_window(twin), expected);
    }
  }
}

// The micro-batches of the twin are those of the replicas, one after the other, bit for bit.
TEST(Loader, SerialTwinReadsTheReplicasBatches) {
  auto const data = make_synthetic_tokens(3, 17, 6, 31, Ragged::yes);
  Sampler const sampler(17, 5, 8);
  Loader twin(*data, sampler, {.replicas = 3, .micros = 2, .all_replicas = true}, 0);
  std::vector<std::unique_ptr<Loader>> ranks;
  for (int r = 0; r < 3; ++r) ranks.push_back(std::make_unique<Loader>(*data, sampler, Cut{.replicas = 3, .replica = r, .micros = 2}, 0));
  for (int update = 0; update < 5; ++update) {
    for (auto const& rank : ranks) {
      for (int k = 0; k < 2; ++k) {
        HostBatch const& mine = rank->next();
        HostBatch const& serial = twin.next();
        EXPECT_EQ(mine.samples, serial.samples);
        EXPECT_EQ(mine.input, serial.input);
        EXPECT_EQ(mine.target, serial.target);
        EXPECT_EQ(mine.hash, serial.hash);
        EXPECT_EQ(mine.counted, serial.counted);
        EXPECT_EQ(mine.window_counted, serial.window_counted);
      }
    }
  }
}

// Case 1: the denominator is the count of the whole window. Case 3: the tail has its own.
TEST(Loader, case_01_WindowCountIsTheSumOverAllPieces) {
  Listed const data({1, 3, 5, 7, 11});
  Sampler const sampler(5, 3, 4);
  std::int64_t epoch_total = 0;
  Loader loader(data, sampler, {.replicas = 2, .micros = 2, .all_replicas = true}, 0);
  for (std::int64_t update = 0; update < 2; ++update) {
    std::int64_t sum = 0, window = 0;
    for (int k = 0; k < 4; ++k) {
      HostBatch const& batch = loader.next();
      sum += batch.counted;
      window = batch.window_counted;
    }
    EXPECT_EQ(sum, window);
    epoch_total += window;
  }
  EXPECT_EQ(epoch_total, 27);
}

// Case 4: with unequal data every rank still makes the same number of steps, and they count for what they hold.
TEST(Loader, case_04_UnequalDataTakesTheSameNumberOfSteps) {
  Listed const data = Listed::of_size(7);
  Sampler const sampler(7, 2, 1);
  std::vector<std::int64_t> rows_per_rank;
  for (int r = 0; r < 2; ++r) {
    Loader loader(data, sampler, {.replicas = 2, .replica = r}, 0);
    std::int64_t rows = 0;
    for (std::int64_t update = 0; update < sampler.updates_per_epoch(); ++update) rows += loader.next().rows;
    rows_per_rank.push_back(rows);
  }
  EXPECT_EQ(rows_per_rank, (std::vector<std::int64_t>{4, 3}));
}

TEST(Loader, ReadingAheadChangesNothing) {
  auto const data = make_synthetic_tokens(1, 29, 8, 61, Ragged::yes);
  Sampler const sampler(29, 6, 2);
  for (int depth : {1, 2, 4}) {
    Loader direct(*data, sampler, {.replicas = 2, .replica = 1, .micros = 2}, 0);
    Loader ahead(*data, sampler, {.replicas = 2, .replica = 1, .micros = 2}, depth);
    for (int i = 0; i < 60; ++i) {
      HostBatch const& a = direct.next();
      HostBatch const& b = ahead.next();
      EXPECT_EQ(a.update, b.update);
      EXPECT_EQ(a.samples, b.samples);
      EXPECT_EQ(a.input, b.input);
      EXPECT_EQ(a.target, b.target);
      EXPECT_EQ(a.hash, b.hash);
      EXPECT_EQ(a.window_counted, b.window_counted);
    }
  }
}

TEST(Loader, RowsCarryTheUpdateAndTheGlobalSampleId) {
  Listed const data = Listed::of_size(9);
  Loader loader(data, Sampler(9, 4, 1), {}, 2, 5);
  HostBatch const& batch = loader.next();
  EXPECT_EQ(batch.update, 5);
  for (std::int64_t row = 0; row < batch.rows; ++row) EXPECT_EQ(batch.samples[std::size_t(2 * row)], 5);
  auto const inputs = values<std::int32_t>(batch.input);
  auto const ids = ids_of(batch);
  for (std::size_t row = 0; row < ids.size(); ++row) {
    EXPECT_EQ(inputs[2 * row], ids[row]);
    EXPECT_EQ(inputs[2 * row + 1], 10 * ids[row]);
  }
}

// Case 49: the hash tells whether two ranks read the same.
TEST(Loader, case_49_HashSeparatesBatchesThatDiffer) {
  Listed const data = Listed::of_size(64);
  Sampler const sampler(64, 8, 1);
  auto first_hash = [&](int replica, std::int64_t update) {
    return Loader(data, sampler, {.replicas = 2, .replica = replica}, 0, update).next().hash;
  };
  EXPECT_EQ(first_hash(0, 0), first_hash(0, 0));
  EXPECT_NE(first_hash(0, 0), first_hash(1, 0));
  EXPECT_NE(first_hash(0, 0), first_hash(0, 1));
}

/// Two numbers per sample, of which one bit can be flipped.
class Flipped final : public Listed {
 public:
  explicit Flipped(int bit) : Listed(std::vector<std::int64_t>(4, 1)), bit_(bit) {}
  void read(std::int64_t sample, std::span<std::byte> input, std::span<std::byte> target) const override {
    Listed::read(sample, input, target);
    if (sample == 2 && bit_ >= 0) input[std::size_t(bit_ / 8)] ^= std::byte(1 << (bit_ % 8));
  }

 private:
  int bit_;
};

std::uint64_t hash_of(Dataset const& data) { return Loader(data, Sampler(4, 4, 1), {}, 0).next().hash; }

TEST(Loader, EveryBitOfTheContentMattersToTheHash) {
  std::vector<std::uint64_t> hashes;
  for (int bit = -1; bit < 64; ++bit) hashes.push_back(hash_of(Flipped(bit)));
  std::sort(hashes.begin(), hashes.end());
  EXPECT_EQ(std::unique(hashes.begin(), hashes.end()), hashes.end());
}

class Failing final : public Listed {
 public:
  Failing() : Listed(std::vector<std::int64_t>(8, 1)) {}
  void read(std::int64_t sample, std::span<std::byte> input, std::span<std::byte> target) const override {
    if (sample == fails_at) throw RankFailure("sample 5 can't be read");
    Listed::read(sample, input, target);
  }
  static constexpr std::int64_t fails_at = 5;
};

TEST(Loader, FailuresArriveInTheirPlaceInTheOrder) {
  Failing const data;
  Sampler const sampler(8, 1, 3);
  for (int depth : {0, 4}) {
    Loader loader(data, sampler, {}, depth);
    std::vector<std::int64_t> room(1);
    for (std::int64_t update = 0;; ++update) {
      if (sampler.samples_of(update, room)[0] == Failing::fails_at) break;
      EXPECT_EQ(ids_of(loader.next()), room);
    }
    EXPECT_THROW(loader.next(), RankFailure);
    EXPECT_THROW(loader.next(), RankFailure);
  }
}

double seconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

class Slow final : public Listed {
 public:
  Slow() : Listed(std::vector<std::int64_t>(8, 1)) {}
  void read(std::int64_t sample, std::span<std::byte> input, std::span<std::byte> target) const override {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    Listed::read(sample, input, target);
  }
};

// Case 105: time blocked on data is what the step loses, not what a timer behind the buffer sees. Eight reads take 160 ms and eight
// computations 40: a timer behind a buffer of four would say nearly nothing. The slack is for a machine that has other work.
TEST(Loader, case_105_BlockedTimeIsWhatTheStepLoses) {
  Slow const data;
  double const reading = 8 * 0.020, slack = 0.050;
  for (int depth : {0, 4}) {
    auto const begin = std::chrono::steady_clock::now();
    Loader loader(data, Sampler(8, 1, 1), {}, depth);
    double computing = 0;
    for (int i = 0; i < 8; ++i) {
      loader.next();
      auto const work = std::chrono::steady_clock::now();
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      computing += seconds_since(work);
    }
    double const wall = seconds_since(begin), blocked = loader.blocked_seconds();
    EXPECT_GE(blocked, depth == 0 ? reading : reading - computing - slack);
    EXPECT_LE(blocked + computing, wall);
  }
}

TEST(Loader, ReadAheadHidesDataThatArrivesInTime) {
  Slow const data;
  double least = 1;
  for (int attempt = 0; attempt < 3; ++attempt) {
    Loader loader(data, Sampler(8, 1, 1), {}, 4);
    std::this_thread::sleep_for(std::chrono::milliseconds(300));  // the four are read in 80
    for (int i = 0; i < 4; ++i) loader.next();
    least = std::min(least, loader.blocked_seconds());
  }
  EXPECT_LT(least, 0.020);
}

TEST(Loader, ABatchStaysValidWhileOthersAreReadAhead) {
  Listed const data = Listed::of_size(16);
  Loader loader(data, Sampler(16, 2, 1), {}, 1);
  for (int i = 0; i < 20; ++i) {
    HostBatch const& batch = loader.next();
    auto const before = batch.input;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
    EXPECT_EQ(batch.input, before);
  }
}

}  // namespace
}  // namespace shardmark
