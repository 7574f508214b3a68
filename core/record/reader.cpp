#include "record/reader.hpp"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "data/utf8.hpp"

namespace shardmark::record {
namespace {

using Json = nlohmann::json;

/// Why `text` isn't a record; empty when it is one.
std::string fault_of(std::string const& text) {
  Json const json = Json::parse(text, nullptr, false);
  if (json.is_discarded()) return "it is not complete JSON";
  auto const found = json.is_object() ? json.find("schema") : json.end();
  if (!json.is_object() || found == json.end() || !found->is_string()) return "it names no schema";
  std::string const schema = found->get<std::string>();
  // The major number says what the names mean; a higher minor number only adds some.
  if (!schema.starts_with("shardmark.bench/1.")) return fmt::format("its schema is {}", escape_invalid_utf8(schema));
  return {};
}

Json at(StoredRecord const& record, std::string_view path) {
  Json json = Json::parse(record.json, nullptr, false);
  while (!path.empty() && json.is_object()) {
    std::string const key(path.substr(0, path.find('.')));
    path.remove_prefix(std::min(path.size(), key.size() + 1));
    auto const found = json.find(key);
    json = found == json.end() ? Json(Json::value_t::discarded) : Json(*found);
  }
  return path.empty() ? json : Json(Json::value_t::discarded);
}

std::string absence(Json const& value, std::string_view path, char const* kind) {
  if (value.is_discarded()) return fmt::format("the record has no {}", path);
  return value.is_null() ? fmt::format("{} is null", path) : fmt::format("{} is no {}", path, kind);
}

}  // namespace

std::vector<std::string> RecordFile::complaints() const {
  std::vector<std::string> out;
  for (BrokenLine const& line : broken)
    out.push_back(fmt::format("{}:{}: not a whole record ({})", escape_invalid_utf8(path), line.line, line.reason));
  return out;
}

RecordFile read_records(std::string const& path) {
  RecordFile out{path, {}, {}};
  errno = 0;
  std::ifstream file(path, std::ios::binary);
  require_input(file.good(),
                {fmt::format("can't read the records in {}", escape_invalid_utf8(path)), std::strerror(errno), "check the path"});
  std::string text;
  for (std::int64_t line = 1; std::getline(file, text); ++line) {
    std::string fault = fault_of(text);
    if (fault.empty()) {
      out.records.push_back({line, text});
    } else {
      out.broken.push_back({line, std::move(fault)});
    }
  }
  require_input(!file.bad(),
                {fmt::format("can't read the records in {}", escape_invalid_utf8(path)), std::strerror(errno), "check the file system"});
  return out;
}

Measured<double> number_at(StoredRecord const& record, std::string_view path) {
  Json const value = at(record, path);
  if (value.is_number()) return value.get<double>();
  return Measured<double>::missing(absence(value, path, "number"));
}

Measured<std::string> text_at(StoredRecord const& record, std::string_view path) {
  Json const value = at(record, path);
  if (value.is_string()) return value.get<std::string>();
  return Measured<std::string>::missing(absence(value, path, "text"));
}

}  // namespace shardmark::record
