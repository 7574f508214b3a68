#pragma once
// Mapped files and what records say of them; private to this folder.

#include <mutex>
#include <vector>

#include "data/dataset.hpp"
#include "data/file.hpp"

namespace shardmark {

/// Owns a data set's files. Their hash reads every byte, so it is made when a record first asks.
class MappedSource {
 public:
  /// `shown`: what the user asked for, as valid UTF-8
  MappedSource(std::string kind, std::string shown, std::vector<MappedFile> files);
  std::span<MappedFile const> files() const { return files_; }
  DataSource const& describe() const;

 private:
  std::vector<MappedFile> files_;
  mutable DataSource source_;
  mutable std::once_flag hashed_;
};

}  // namespace shardmark
