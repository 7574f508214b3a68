#pragma once
// Every tensor of step 1 that a proof compares, as the serial twin has it: activations and input gradients of all micro-batches in
// the twin's order are one tensor (the global batch), which the candidate's ranks hold in pieces.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "run/job.hpp"
#include "verify/verify.hpp"

namespace shardmark {

enum class TensorKind : std::uint8_t { output, loss, norm, input_gradient, weight_gradient, updated_weight };

struct TensorInfo {
  std::string name;
  std::string module;
  TensorKind kind{};
  int order = 0;  // forward, then backward, then the update
  std::int64_t elements = 0;
  bool null_gradient = false;
};

class Catalogue {
 public:
  /// @param job the candidate's; its twin has the same micro-batches
  Catalogue(Job const& job, Scope scope);

  std::vector<TensorInfo> const& tensors() const { return tensors_; }
  TensorInfo const& operator[](int tensor) const { return tensors_[std::size_t(tensor)]; }
  /// Index of a tensor by its block (output, input gradient) or parameter (weights); -1: not compared.
  int find(TensorKind kind, int which = 0) const;
  /// Block with this name. @throws Error when there is none.
  int block(std::string_view module) const;
  /// Where the part of one of the twin's micro-batches begins and ends in an output or input gradient.
  Range range_of(int tensor, int twin_micro) const;
  Range whole(int tensor) const { return {0, tensors_[std::size_t(tensor)].elements}; }
  int micros() const { return int(first_row_.size()) - 1; }

 private:
  void add(TensorKind kind, int which, TensorInfo info);

  struct Key {
    TensorKind kind;
    int which;
    bool operator==(Key const&) const = default;
  };
  std::vector<Key> keys_;
  std::vector<TensorInfo> tensors_;
  std::vector<std::string> blocks_;
  std::vector<std::int64_t> first_row_;  // by micro-batch of the twin, and the end
};

}  // namespace shardmark
