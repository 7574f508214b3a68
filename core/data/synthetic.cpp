// Data that needs no file: every value is a function of (seed, sample, position).

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/error.hpp"
#include "base/random.hpp"
#include "data/dataset.hpp"

namespace shardmark {
namespace {

/// Writes `value` as element `index` of raw memory.
template <class T>
void put(std::span<std::byte> bytes, std::size_t index, T value) {
  std::memcpy(bytes.data() + index * sizeof(T), &value, sizeof(T));
}

/// Separates the streams that one seed feeds.
enum class Role : std::uint64_t { tokens = 1, lengths, inputs, teacher };

std::uint64_t stream(Role what, std::int64_t sample = 0) { return std::uint64_t(what) << 56 | std::uint64_t(sample); }

class SyntheticTokens final : public Dataset {
 public:
  SyntheticTokens(std::uint64_t seed, std::int64_t samples, std::int64_t seq, std::int64_t vocab, Ragged ragged)
      : seed_(seed), samples_(samples), ragged_(ragged) {
    expect(samples > 0 && seq > 0 && vocab > 0, "synthetic tokens need samples, positions and a vocabulary");
    shape_ = {DType::i32, DType::i32, {seq}, {seq}, vocab};
    successor_.reserve(std::size_t(vocab));
    cumulative_.reserve(std::size_t(vocab));
    double sum = 0;
    for (std::int64_t token = 0; token < vocab; ++token) {
      successor_.push_back(std::int32_t(permuted(token, vocab, seed, -1)));
      cumulative_.push_back(sum += 1 / double(token + 1));
    }
  }

  std::int64_t size() const override { return samples_; }
  SampleShape const& shape() const override { return shape_; }
  DataSource const& source() const override { return source_; }

  std::int64_t counted(std::int64_t sample) const override {
    std::int64_t const seq = shape_.input[0], shortest = std::max<std::int64_t>(seq / 2, 1);
    if (ragged_ == Ragged::no) return seq;
    Randoms const randoms(seed_, Purpose::synthetic_data, stream(Role::lengths));
    return shortest + std::int64_t(randoms.below(std::uint64_t(seq - shortest + 1), std::uint64_t(sample)));
  }

  void read(std::int64_t sample, std::span<std::byte> input, std::span<std::byte> target) const override {
    expect(sample >= 0 && sample < samples_, "a sample of the data set");
    Randoms const randoms(seed_, Purpose::synthetic_data, stream(Role::tokens, sample));
    std::size_t const seq = std::size_t(shape_.input[0]), length = std::size_t(counted(sample));
    std::int32_t token = unigram(randoms.uniform(0));
    for (std::size_t s = 0; s < seq; ++s) {
      put(input, s, token);
      std::array<std::uint32_t, 4> const words = randoms.block(s + 1, 1);
      bool const follows = words[0] < 0xC0000000u;  // three times out of four
      token = follows ? successor_[std::size_t(token)] : unigram((words[1] + 0.5) * 0x1p-32);
      put(target, s, s < length ? token : std::int32_t{-1});
    }
  }

 private:
  /// The token at quantile `u` of Zipf's law, p(token) ~ 1 / (token + 1).
  std::int32_t unigram(double u) const {
    auto const at = std::lower_bound(cumulative_.begin(), cumulative_.end(), u * cumulative_.back());
    return std::int32_t(std::min<std::ptrdiff_t>(at - cumulative_.begin(), std::ptrdiff_t(cumulative_.size()) - 1));
  }

  std::uint64_t seed_;
  std::int64_t samples_;
  Ragged ragged_;
  SampleShape shape_;
  DataSource source_{.kind = "synthetic", .path = {}, .bytes = 0, .sha256 = {}};
  std::vector<std::int32_t> successor_;
  std::vector<double> cumulative_;
};

class SyntheticVectors final : public Dataset {
 public:
  SyntheticVectors(std::uint64_t seed, std::int64_t samples, std::vector<std::int64_t> features, std::int64_t classes,
                   std::array<std::int64_t, 3> image = {})
      : seed_(seed), samples_(samples) {
    expect(samples > 0 && classes >= 0, "synthetic vectors need samples");
    for (std::int64_t extent : features) features_ *= std::size_t(extent);
    shape_ = {DType::f32, classes > 0 ? DType::i32 : DType::f32, std::move(features), {1}, classes, image};
    Randoms const randoms(seed, Purpose::synthetic_data, stream(Role::teacher));
    teacher_.resize(features_ * std::size_t(std::max<std::int64_t>(classes, 1)));
    double const scale = 1 / std::sqrt(double(features_));  // outputs of unit variance
    for (std::size_t i = 0; i < teacher_.size(); ++i) teacher_[i] = scale * randoms.normal(i);
  }

  std::int64_t size() const override { return samples_; }
  SampleShape const& shape() const override { return shape_; }
  DataSource const& source() const override { return source_; }
  std::int64_t counted(std::int64_t) const override { return 1; }

  void read(std::int64_t sample, std::span<std::byte> input, std::span<std::byte> target) const override {
    expect(sample >= 0 && sample < samples_, "a sample of the data set");
    Randoms const randoms(seed_, Purpose::synthetic_data, stream(Role::inputs, sample));
    for (std::size_t i = 0; i < features_; ++i) put(input, i, float(randoms.normal(i)));
    if (shape_.classes == 0) {
      put(target, 0, float(output(0, input)));
    } else {
      put(target, 0, label(input));
    }
  }

 private:
  double output(std::size_t unit, std::span<std::byte const> input) const {
    double sum = 0;
    for (std::size_t i = 0; i < features_; ++i) {
      float x = 0;
      std::memcpy(&x, input.data() + i * sizeof x, sizeof x);
      sum += teacher_[unit * features_ + i] * double(x);
    }
    return sum;
  }

  std::int32_t label(std::span<std::byte const> input) const {
    std::int32_t best = 0;
    double highest = output(0, input);
    for (std::int32_t c = 1; c < std::int32_t(shape_.classes); ++c) {
      double const value = output(std::size_t(c), input);
      if (value > highest) {
        highest = value;
        best = c;
      }
    }
    return best;
  }

  std::uint64_t seed_;
  std::int64_t samples_;
  std::size_t features_ = 1;
  SampleShape shape_;
  DataSource source_{.kind = "synthetic", .path = {}, .bytes = 0, .sha256 = {}};
  std::vector<double> teacher_;
};

}  // namespace

std::unique_ptr<Dataset> make_synthetic_tokens(std::uint64_t seed, std::int64_t samples, std::int64_t seq, std::int64_t vocab,
                                               Ragged ragged) {
  return std::make_unique<SyntheticTokens>(seed, samples, seq, vocab, ragged);
}

std::unique_ptr<Dataset> make_synthetic_vectors(std::uint64_t seed, std::int64_t samples, std::vector<std::int64_t> features,
                                                std::int64_t classes) {
  return std::make_unique<SyntheticVectors>(seed, samples, std::move(features), classes);
}

std::unique_ptr<Dataset> make_synthetic_images(std::uint64_t seed, std::int64_t samples, std::array<std::int64_t, 3> image,
                                               std::int64_t classes) {
  return std::make_unique<SyntheticVectors>(seed, samples, std::vector{image[0] * image[1] * image[2]}, classes, image);
}

}  // namespace shardmark
