#pragma once
// Writes fields of a record into JSON; private to this folder. What is missing with a reason becomes null, and its reason is noted under
// its path.

#include <cmath>
#include <concepts>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "data/utf8.hpp"
#include "metrics/measured.hpp"

namespace shardmark::record {

using Json = nlohmann::ordered_json;

class Fields {
 public:
  /// The top level; `reasons` collects path -> reason.
  Fields(Json& json, Json& reasons) : json_(json), reasons_(reasons) { json_ = Json::object(); }

  template <std::integral T>
  void put(char const* key, T value) {
    json_[key] = value;
  }
  void put(char const* key, double value) {
    if (std::isfinite(value)) {
      json_[key] = value;
    } else {
      missing(key, "the value is not finite");
    }
  }
  void put(char const* key, std::string_view text) { json_[key] = escape_invalid_utf8(text); }
  void put(char const* key, std::string const& text) { put(key, std::string_view(text)); }
  void put(char const* key, char const* text) { put(key, std::string_view(text)); }
  void put(char const* key, std::vector<std::string> const& texts) {
    Json list = Json::array();
    for (std::string const& text : texts) list.push_back(escape_invalid_utf8(text));
    json_[key] = std::move(list);
  }
  /// Numbers that aren't finite become null in their places.
  void put(char const* key, std::vector<double> const& values) {
    Json list = Json::array();
    for (double value : values) list.push_back(std::isfinite(value) ? Json(value) : Json());
    json_[key] = std::move(list);
  }
  template <class T>
  void put(char const* key, std::optional<T> const& value) {
    if (value) {
      put(key, *value);
    } else {
      json_[key] = nullptr;
    }
  }
  template <class T>
  void put(char const* key, Measured<T> const& value) {
    if (value) {
      put(key, *value);
    } else {
      missing(key, value.reason());
    }
  }
  void missing(char const* key, std::string const& reason) {
    json_[key] = nullptr;
    reasons_[path_ + key] = escape_invalid_utf8(reason);
  }

  /// An object: write(fields, value) puts its fields.
  template <class T, class Write>
  void object(char const* key, T const& value, Write&& write) {
    Fields inner(json_[key], reasons_, path_ + key + ".");
    write(inner, value);
  }
  template <class T, class Write>
  void object(char const* key, std::optional<T> const& value, Write&& write) {
    if (value) {
      object(key, *value, write);
    } else {
      json_[key] = nullptr;
    }
  }
  template <class T, class Write>
  void object(char const* key, Measured<T> const& value, Write&& write) {
    if (value) {
      object(key, *value, write);
    } else {
      missing(key, value.reason());
    }
  }
  /// A list of objects.
  template <class T, class Write>
  void list(char const* key, std::vector<T> const& values, Write&& write) {
    Json& items = json_[key] = Json::array();
    for (std::size_t i = 0; i < values.size(); ++i) {
      items.push_back(nullptr);
      Fields inner(items.back(), reasons_, path_ + key + "[" + std::to_string(i) + "].");
      write(inner, values[i]);
    }
  }
  /// {"value": number} or {"value": null, "reason": text}: how a headline number says why it is missing.
  template <class T>
  void with_reason(Measured<T> const& value) {
    if (value) {
      put("value", *value);
    } else {
      json_["value"] = nullptr;
      put("reason", value.reason());
    }
  }

 private:
  Fields(Json& json, Json& reasons, std::string path) : json_(json), reasons_(reasons), path_(std::move(path)) { json_ = Json::object(); }

  Json& json_;
  Json& reasons_;
  std::string path_;
};

struct Result;
void write_result(Fields& fields, Result const& result);

}  // namespace shardmark::record
