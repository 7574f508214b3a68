#include "data/mapped_source.hpp"

#include "data/sha256.hpp"

namespace shardmark {

MappedSource::MappedSource(std::string kind, std::string shown, std::vector<MappedFile> files)
    : files_(std::move(files)), source_{.kind = std::move(kind), .path = std::move(shown), .bytes = 0, .sha256 = {}} {
  for (MappedFile const& file : files_) source_.bytes += file.size();
}

DataSource const& MappedSource::describe() const {
  std::call_once(hashed_, [this] {
    Sha256 hash;
    for (MappedFile const& file : files_) hash.add(file.bytes());
    source_.sha256 = hash.hex();
  });
  return source_;
}

}  // namespace shardmark
