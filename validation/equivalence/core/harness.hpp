#pragma once
// Programs built by hand on thread ranks: models, schedules and batches that no strategy's options can name.

#include <cstring>
#include <functional>
#include <mutex>

#include "backend/backend.hpp"
#include "comm/fabric.hpp"
#include "comm/mesh.hpp"
#include "run/program.hpp"

namespace shardmark::testing {

/// Samples of one f64 input vector and one f64 target vector each, in the order given, without end.
class FixedBatches final : public BatchSource {
 public:
  struct Sample {
    std::vector<double> input, target;
  };
  /// Micro-batch i holds rows[i % rows.size()] samples; a window of `micros` shares one denominator.
  FixedBatches(std::vector<Sample> samples, std::vector<std::int64_t> rows, std::size_t micros_per_window)
      : samples_(std::move(samples)), rows_(std::move(rows)), window_(micros_per_window) {}

  HostBatch const& next() override {
    batch_ = {};
    batch_.rows = rows_[at_ % rows_.size()];
    batch_.update = std::int64_t(at_ / window_);
    batch_.counted = batch_.rows;
    for (std::size_t m = at_ / window_ * window_; m < (at_ / window_ + 1) * window_; ++m) batch_.window_counted += rows_[m % rows_.size()];
    for (std::int64_t r = 0; r < batch_.rows; ++r) {
      Sample const& s = samples_[next_++ % samples_.size()];
      append(batch_.input, s.input);
      append(batch_.target, s.target);
      batch_.samples.insert(batch_.samples.end(), {batch_.update, std::int64_t(next_ - 1)});
    }
    ++at_;
    return batch_;
  }

 private:
  static void append(std::vector<std::byte>& bytes, std::vector<double> const& values) {
    auto const* p = reinterpret_cast<std::byte const*>(values.data());
    bytes.insert(bytes.end(), p, p + values.size() * sizeof(double));
  }
  std::vector<Sample> samples_;
  std::vector<std::int64_t> rows_;
  std::size_t window_, at_ = 0, next_ = 0;
  HostBatch batch_;
};

/// Memory and mesh of one rank.
struct Bench {
  Bench(Backend& backend, Communicator& world, MeshShape shape, std::vector<NamedGroup> const& named = {}, std::size_t bytes = 64 << 20)
      : ops(backend), pages(bytes), arena({pages.data(), pages.bytes(), Place::host, Book::workspace}, ledger), mesh(world, shape, named) {}
  Backend& ops;
  Pages pages;
  Ledger ledger;
  Arena arena;
  Mesh mesh;
};

inline std::vector<double> values_of(View const& view) {
  std::vector<double> out;
  for (std::int64_t i = 0; i < view.elements(); ++i)
    out.push_back(view.dtype == DType::f64 ? view.as<double>()[i] : double(view.as<float>()[i]));
  return out;
}

/// The latest weights of a unit, without padding.
inline std::vector<double> weights_of(Program& program, UnitId unit) {
  program.stream().synchronize();
  View const flat = program.store().flat(Part::master, unit, program.store().latest(unit));
  return values_of(slice(flat, 0, 0, program.parts().model.spec[unit].elements));
}

}  // namespace shardmark::testing
