#pragma once
// Data: a batch is a function of (seed, ordinal) alone, never of the rank count.

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/ranges.hpp"
#include "base/types.hpp"

namespace shardmark {

/// Shape of one sample. Token models: input i32 [seq], target i32 [seq]. Vectors: input f32 [features...], target i32 [1] or f32.
struct SampleShape {
  DType input_type = DType::i32, target_type = DType::i32;
  std::vector<std::int64_t> input, target;
  std::int64_t classes = 0;             // vocabulary or number of classes; 0: regression
  std::array<std::int64_t, 3> image{};  // channels, height, width, when the input is an image, plane after plane
};

/// Where the samples came from, for records.
struct DataSource {
  std::string kind;  // synthetic, text, ...
  std::string path;  // valid UTF-8, other bytes escaped; empty for synthetic
  std::int64_t bytes = 0;
  std::string sha256;  // of the raw bytes, a folder's files one after the other; empty for synthetic
};

/// Random access to samples; const and safe to read from several threads.
class Dataset {
 public:
  virtual ~Dataset() = default;
  virtual std::int64_t size() const = 0;
  virtual SampleShape const& shape() const = 0;
  /// Writes one sample. `input` and `target` have the sizes that shape() says, in bytes.
  virtual void read(std::int64_t sample, std::span<std::byte> input, std::span<std::byte> target) const = 0;
  /// Loss terms that the sample counts for: valid tokens, or 1. Targets of -1 are not counted.
  virtual std::int64_t counted(std::int64_t sample) const = 0;
  virtual DataSource const& source() const = 0;
};

enum class Ragged : std::uint8_t { no, yes };
/// Tokens that follow a learnable rule: each is its predecessor's fixed successor three times out of four, else drawn from Zipf's law.
/// Ragged::yes: each sample counts a length in [seq/2, seq] that depends on the sample (the other targets are -1).
std::unique_ptr<Dataset> make_synthetic_tokens(std::uint64_t seed, std::int64_t samples, std::int64_t seq, std::int64_t vocab,
                                               Ragged ragged);
/// Gaussian vectors with labels from a fixed random linear teacher; classes = 0: regression on the teacher's value, target f32 [1].
std::unique_ptr<Dataset> make_synthetic_vectors(std::uint64_t seed, std::int64_t samples, std::vector<std::int64_t> features,
                                                std::int64_t classes);
/// The same as images {channels, height, width}: the vector holds plane after plane.
std::unique_ptr<Dataset> make_synthetic_images(std::uint64_t seed, std::int64_t samples, std::array<std::int64_t, 3> image,
                                               std::int64_t classes);

/// Real data are cut in two; training never sees the held-out part.
enum class DataPart : std::uint8_t { training, held_out };
/// Bytes of a file, or of a folder's files in sorted order (recursively, symlinks inside it skipped); vocabulary 256, no normalisation.
/// Held in memory: what the record's hash covers is what is trained on, whatever happens to the file. Windows don't overlap: floor((tokens
/// - 1) / seq) of them; the last token is only a target. The last floor(held_out x windows) of them are the held-out part.
/// @throws BadRequest: not found, not readable, empty, too short (names the minimum, seq + 1), vocab < 256, a part without windows.
std::unique_ptr<Dataset> open_text(std::string const& path, std::int64_t seq, std::int64_t vocab, double held_out, DataPart part);

/// Which samples an update uses. Each epoch is a permutation from (seed, epoch) that covers the data set once; the last update
/// of an epoch is short rather than padded or wrapped.
class Sampler {
 public:
  Sampler(std::int64_t samples, std::int64_t global_batch, std::uint64_t seed);
  std::int64_t updates_per_epoch() const;
  /// Sample ids of update `update` (0-based since the run began), in order. `out` has room for global_batch; returns the used part.
  std::span<std::int64_t> samples_of(std::int64_t update, std::span<std::int64_t> out) const;
  std::int64_t global_batch() const { return global_batch_; }

 private:
  std::int64_t samples_, global_batch_;
  std::uint64_t seed_;
};
/// The index-th element of a pseudo-random permutation of [0, n) from (seed, epoch): a Philox-keyed Feistel network with cycle walking;
/// O(1) memory.
std::int64_t permuted(std::int64_t index, std::int64_t n, std::uint64_t seed, std::int64_t epoch);

/// One host-side micro-batch.
struct HostBatch {
  std::int64_t update = 0;
  std::int64_t rows = 0;  // may be 0
  std::vector<std::byte> input, target;
  std::vector<std::int64_t> samples;  // rows x 2: (update, global sample id)
  std::int64_t counted = 0;           // loss terms of these rows
  std::int64_t window_counted = 0;    // loss terms of the whole update: the one global denominator
  std::uint64_t hash = 0;             // of ids and content; equal on all ranks that must read the same
};

/// What an update is made of: a global batch, or one micro-batch of it, with its own denominator and number (PipeDream without a flush).
enum class UpdateOf : std::uint8_t { batch, micro };

/// How a global batch is cut: into `replicas` pieces, each into `micros` pieces (nested, validation rule 2: 10 over 2 x 3 is
/// 2,2,1 | 2,2,1). `replica` is the one that is read. With `all_replicas` one process reads all of them, one after the other, as serial
/// twins do: micro index = replica * micros + k. UpdateOf::micro is for one replica.
struct Cut {
  int replicas = 1;
  int replica = 0;
  int micros = 1;
  bool all_replicas = false;
  UpdateOf update = UpdateOf::batch;
};

/// Reads micro-batches in order, without end; with `depth` > 0 a thread reads up to `depth` of them ahead. All memory is taken at
/// construction.
class Loader {
 public:
  /// `data` outlives the loader. depth 0: read in the caller.
  Loader(Dataset const& data, Sampler const& sampler, Cut cut, int depth, std::int64_t first_update = 0);
  ~Loader();
  Loader(Loader const&) = delete;
  Loader& operator=(Loader const&) = delete;
  /// The next micro-batch; valid until the following call. @throws what the data set threw for it, in its place in the order.
  HostBatch const& next();
  /// Time that callers of next() spent in it, since construction.
  double blocked_seconds() const;
  int micros_per_update() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Hands every sample of a data set to exactly one (rank, round), without padding (case 5). Batch b holds samples [b * rows, (b + 1) *
/// rows), whatever the number of ranks, and rank r of R reads the batches r, r + R, ...
class Evaluation {
 public:
  /// `data` outlives this. @param rows largest number of samples of one batch
  Evaluation(Dataset const& data, std::int64_t rows, int ranks, int rank);
  /// The same on all ranks, so that collectives match; a rank's last round may have no rows.
  std::int64_t rounds() const { return rounds_; }
  /// Reads this rank's batch of a round; valid until the following call. Its window_counted is that of the whole data set, its update 0.
  HostBatch const& read(std::int64_t round);

 private:
  Dataset const& data_;
  std::int64_t rows_, rounds_ = 0;
  int ranks_, rank_;
  std::int64_t window_counted_ = 0;
  std::vector<std::int64_t> ids_;
  HostBatch batch_;
};

}  // namespace shardmark
