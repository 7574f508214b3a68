#pragma once
// Tensors in files of the safetensors format (github.com/huggingface/safetensors): 8 bytes little-endian with the length of a JSON
// header that gives each tensor's dtype, shape and data_offsets, then the data. Own writer and reader, since no C++ package exists.
//
// Ranks write and read the piece that they hold of a full tensor, so that a file doesn't depend on how many ranks share the work.

#include <cstddef>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/durable.hpp"
#include "data/file.hpp"
#include "model/spec.hpp"

namespace shardmark {

/// A tensor in a file, in full.
struct StoredTensor {
  std::string name;
  DType dtype = DType::f32;
  std::vector<std::int64_t> shape;
  friend bool operator==(StoredTensor const&, StoredTensor const&) = default;
};

using Metadata = std::map<std::string, std::string>;

class SafetensorsWriter {
 public:
  /// Makes the file, which must not exist, with room for `tensors`, which have different names. @throws RankFailure when it can't
  SafetensorsWriter(std::filesystem::path path, std::vector<StoredTensor> tensors, Metadata const& metadata = {});
  /// Writes the piece `slice` of a tensor, contiguous, in the tensor's type. @throws RankFailure when it can't
  void write(std::string_view name, Slice const& slice, std::span<std::byte const> piece);
  /// Every byte was written once, and is on the disk when this returns. @throws RankFailure when it can't
  void finish();

 private:
  std::filesystem::path path_;
  std::map<std::string, std::pair<StoredTensor, std::int64_t>, std::less<>> tensors_;  // with the byte in the file at which it begins
  Descriptor file_;
  std::int64_t missing_ = 0;  // bytes
};

/// A file that may come from anywhere: what it says of itself is checked against its size before it is used.
class SafetensorsFile {
 public:
  /// @throws BadRequest that names file, found and expected: not readable, cut, a header that isn't one, absurd sizes, ranges that
  /// overlap or leave holes, names given twice, types that no tensor here has
  explicit SafetensorsFile(std::filesystem::path const& path);
  /// By name.
  std::vector<StoredTensor> tensors() const;
  Metadata const& metadata() const { return metadata_; }
  /// Refuses the file unless it has exactly `tensors`, in any order. @throws BadRequest that names the first difference
  void require(std::vector<StoredTensor> const& tensors) const;
  /// Copies the piece `slice` of a tensor. @pre the file has it, and `piece` is as large as the slice
  void read(std::string_view name, Slice const& slice, std::span<std::byte> piece) const;

 private:
  MappedFile file_;
  std::map<std::string, std::pair<StoredTensor, std::int64_t>, std::less<>> tensors_;
  Metadata metadata_;
};

}  // namespace shardmark
