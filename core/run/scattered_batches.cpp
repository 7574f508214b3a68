#include "run/scattered_batches.hpp"

#include <chrono>
#include <cstring>

#include "base/mutant.hpp"

namespace shardmark {
namespace {

constexpr std::size_t alignment = 64;

/// In front of a micro-batch.
struct Head {
  std::int64_t update, rows, counted, window_counted;
  std::uint64_t hash;
};

std::size_t bytes_of_sample(DType type, std::vector<std::int64_t> const& shape) {
  std::size_t bytes = width(type);
  for (std::int64_t extent : shape) bytes *= std::size_t(extent);
  return bytes;
}

constexpr std::size_t bytes_of_id = 2 * sizeof(std::int64_t);  // update and sample

}  // namespace

ScatterLayout::ScatterLayout(SampleShape const& samples, std::int64_t global_batch, int replicas, int micro_batches)
    : rows(piece_of(piece_of(global_batch, replicas, 0).size(), micro_batches, 0).size()),
      micros(micro_batches),
      input_bytes(bytes_of_sample(samples.input_type, samples.input)),
      target_bytes(bytes_of_sample(samples.target_type, samples.target)) {}

std::size_t ScatterLayout::micro_bytes() const {
  std::size_t const bytes = sizeof(Head) + std::size_t(rows) * (bytes_of_id + input_bytes + target_bytes);
  return (bytes + alignment - 1) / alignment * alignment;
}

void ScatterLayout::pack(HostBatch const& batch, std::byte* at) const {
  expect(batch.rows <= rows, "no piece is larger than the first");
  Head const head{batch.update, batch.rows, batch.counted, batch.window_counted, batch.hash};
  std::memcpy(at, &head, sizeof head);
  at += sizeof head;
  std::memcpy(at, batch.samples.data(), std::size_t(batch.rows) * bytes_of_id);
  at += std::size_t(rows) * bytes_of_id;
  std::memcpy(at, batch.input.data(), batch.input.size());
  at += std::size_t(rows) * input_bytes;
  std::memcpy(at, batch.target.data(), batch.target.size());
}

void ScatterLayout::unpack(std::byte const* at, HostBatch& batch) const {
  Head head;
  std::memcpy(&head, at, sizeof head);
  batch.update = head.update;
  batch.rows = head.rows;
  batch.counted = head.counted;
  batch.window_counted = head.window_counted;
  batch.hash = head.hash;
  auto const filled = std::size_t(batch.rows);
  batch.samples.resize(filled * 2);
  batch.input.resize(filled * input_bytes);
  batch.target.resize(filled * target_bytes);
  at += sizeof head;
  std::memcpy(batch.samples.data(), at, filled * bytes_of_id);
  at += std::size_t(rows) * bytes_of_id;
  std::memcpy(batch.input.data(), at, batch.input.size());
  at += std::size_t(rows) * input_bytes;
  std::memcpy(batch.target.data(), at, batch.target.size());
}

ScatteredBatches::ScatteredBatches(ScatterParts parts)
    : parts_(parts), stream_(parts.ops.stream()), batches_(std::size_t(parts.layout.micros)), given_(batches_.size()) {
  parts_.arena.watch(*stream_);
  auto const bytes = std::int64_t(parts_.layout.bytes());
  if (reads()) all_ = parts_.arena.make(DType::u8, {parts_.replicas.size(), bytes}, Book::communication, *stream_);
  mine_ = parts_.arena.make(DType::u8, {bytes}, Book::communication, *stream_);
  auto const rows = std::size_t(parts_.layout.rows);
  for (HostBatch& batch : batches_) {  // nothing is allocated later
    batch.samples.reserve(rows * 2);
    batch.input.reserve(rows * parts_.layout.input_bytes);
    batch.target.reserve(rows * parts_.layout.target_bytes);
  }
}

HostBatch const& ScatteredBatches::next() {
  if (given_ == batches_.size()) {
    auto const begin = std::chrono::steady_clock::now();
    scatter();
    blocked_seconds_ += std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    given_ = 0;
  }
  HostBatch const& batch = batches_[given_++];
  return parts_.values == Values::none ? parts_.source->next() : batch;
}

void ScatteredBatches::scatter() {
  ScatterLayout const& layout = parts_.layout;
  bool const real = parts_.values == Values::real;
  if (reads() && real)
    for (std::size_t piece = 0; piece < std::size_t(parts_.replicas.size() * layout.micros); ++piece)
      layout.pack(parts_.source->next(), all_.view.data + piece * layout.micro_bytes());
  Exchange const samples{.what = Collective::scatter, .send = all_, .recv = mine_, .purpose = "samples"};
  if (mutant("samples_scattered_twice")) parts_.replicas.post(*stream_, samples).wait(*stream_);
  parts_.replicas.post(*stream_, samples).wait(*stream_);
  stream_->synchronize();
  if (real)
    for (std::size_t k = 0; k < batches_.size(); ++k) layout.unpack(mine_.view.data + k * layout.micro_bytes(), batches_[k]);
}

}  // namespace shardmark
