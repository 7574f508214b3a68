#pragma once
// Reading files of records. A line that isn't a whole record is named, never skipped in silence.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "metrics/measured.hpp"

namespace shardmark::record {

/// A line that is a whole record.
struct StoredRecord {
  std::int64_t line = 0;  // from 1
  std::string json;
};

/// A line that isn't: torn, or of another schema.
struct BrokenLine {
  std::int64_t line = 0;
  std::string reason;
};

struct RecordFile {
  std::string path;
  std::vector<StoredRecord> records;
  std::vector<BrokenLine> broken;
  /// One line a broken line: "FILE:3: not a whole record (...)".
  std::vector<std::string> complaints() const;
};
/// @throws BadRequest when the file can't be read.
RecordFile read_records(std::string const& path);

/// The number at a dotted path, such as "result.step_seconds.median".
Measured<double> number_at(StoredRecord const& record, std::string_view path);
Measured<std::string> text_at(StoredRecord const& record, std::string_view path);

}  // namespace shardmark::record
