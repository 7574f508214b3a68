#pragma once
// Checkpoints: what a run needs to go on later, on any number of ranks, with the bits of a run that was never interrupted.
//
//   DIR/update-60/model.safetensors      weights
//                 optimizer.safetensors  moments
//                 state.json             position and what must agree with the run that goes on
//                 SHA256SUMS             of the three; `sha256sum -c` reads it
//
// A checkpoint is made under another name and gets its own when everything is on the disk, so a folder update-N is complete whatever ended
// the program; the older one is removed after that.

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "run/checkpoint/program_state.hpp"

namespace shardmark {

/// Something that has to be the same when a run goes on: its name for messages, and its value.
struct Agreed {
  std::string name, value;
  friend bool operator==(Agreed const&, Agreed const&) = default;
};
using Fingerprint = std::vector<Agreed>;

struct CheckpointState {
  std::int64_t updates = 0;  // made so far: the position in data, dropout keys, learning-rate schedule and bias corrections
  double learning_rate = 0;  // of the next update, for readers: it follows from the options and `updates`
  Fingerprint fingerprint;
};

/// "optimizer adamw, this run's is sgd": the first thing in which they differ.
std::optional<std::string> difference(Fingerprint const& saved, Fingerprint const& mine);

/// Where one run keeps its newest checkpoint. One process writes.
class CheckpointFolder {
 public:
  enum class Existing : std::uint8_t { refuse, go_on };
  /// Makes the folder. @throws BadRequest when it can't, or when it exists and that is refused
  CheckpointFolder(std::filesystem::path path, Existing existing);
  /// Refuses a folder that exists. @throws BadRequest that says what to do
  static void require_new(std::filesystem::path const& path);
  /// Makes update-N of a drained program, whose state `held` is all there is of it, then removes older ones. `beat` is called now and then.
  /// @returns its bytes. @throws RankFailure when it can't be written: nothing but the older checkpoint is left.
  std::int64_t save(CheckpointState const& state, Program& program, HeldState const& held, std::function<void()> const& beat);

 private:
  void write(std::filesystem::path const& part, CheckpointState const& state, Program& program, HeldState const& held,
             std::function<void()> const& beat);
  void retire(std::string const& newest);

  std::filesystem::path path_;
};

/// The newest checkpoint in a folder, which may have been damaged since it was written.
class Checkpoint {
 public:
  /// @throws BadRequest with file, found and expected: no complete checkpoint, files missing, of another length, another state
  explicit Checkpoint(std::filesystem::path const& folder);
  CheckpointState const& state() const { return state_; }
  /// Valid UTF-8, for messages and records.
  std::string text() const;
  /// Reads all of it: every byte is as it was written, and the tensors are those of this job. @throws BadRequest
  void require_intact(Model const& model, OptimizerSettings const& optimizer) const;
  /// Loads what this rank holds; collective over replicas. @pre the program was made with updates_before = state().updates
  void load(Program& program) const;

 private:
  std::filesystem::path path_;
  std::vector<std::pair<std::string, std::string>> sums_;  // file, SHA-256
  CheckpointState state_;
};

}  // namespace shardmark
