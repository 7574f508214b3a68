#pragma once
// A value, or the reason why there is none. What can't be read is null with a reason in a record, never a made-up number.

#include <cmath>
#include <concepts>
#include <optional>
#include <string>
#include <utility>

namespace shardmark {

template <class T>
class Measured {
 public:
  /// Not measured.
  Measured() = default;
  /// A number that isn't finite counts as missing: JSON has no NaN.
  Measured(T value) {
    if constexpr (std::floating_point<T>) {
      if (!std::isfinite(value)) {
        reason_ = "the value is not finite";
        return;
      }
    }
    value_ = std::move(value);
    reason_.clear();
  }
  static Measured missing(std::string reason) {
    Measured out;
    out.reason_ = std::move(reason);
    return out;
  }

  explicit operator bool() const { return value_.has_value(); }
  /// @pre there is one
  T const& operator*() const { return value_.value(); }
  T const* operator->() const { return &value_.value(); }
  T value_or(T other) const { return value_.value_or(std::move(other)); }
  /// Why there is no value; empty when there is one.
  std::string const& reason() const { return reason_; }
  std::optional<T> const& optional() const { return value_; }

 private:
  std::optional<T> value_;
  std::string reason_ = "not measured";
};

}  // namespace shardmark
