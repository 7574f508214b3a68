#pragma once
// What validate() says of one view; private to this folder.

#include <fmt/format.h>

#include "backend/op_access.hpp"

namespace shardmark::validation {

inline bool floating(DType type) { return type == DType::f64 || type == DType::f32 || type == DType::bf16; }

/// A list of dimensions that may be compared with a view's without allocating.
struct Dims {
  std::array<std::int64_t, 4> n{};
  int rank = 0;
  Dims(std::initializer_list<std::int64_t> list) {
    for (auto d : list) n[std::size_t(rank++)] = d;
  }
  bool operator==(View const& v) const {
    bool same = rank == v.rank;
    for (int i = 0; same && i < rank; ++i) same = n[std::size_t(i)] == v.shape[std::size_t(i)];
    return same;
  }
};

class Check {
 public:
  explicit Check(std::string_view op) : op_(op) {}

  void that(bool good, std::string_view problem) const {
    if (!good) [[unlikely]]
      fail_check("precondition", fmt::format("{}: {}", op_, problem), {__builtin_FILE(), __builtin_LINE()});
  }
  void view(bool good, std::string_view what, View const& v, std::string_view problem) const {
    if (!good) [[unlikely]]
      fail_check("precondition", fmt::format("{}: {} {} {}", op_, what, to_string(v), problem), {__builtin_FILE(), __builtin_LINE()});
  }

  /// Present, of this type, and the last dimension dense.
  void typed(std::string_view what, View const& v, DType type) const {
    view(bool(v), what, v, "is missing");
    view(v.dtype == type, what, v, "has the wrong type");
    view(columns_of(v) <= 1 || v.stride[v.rank - 1u] == 1, what, v, "needs a dense last dimension");
  }
  /// `typed`, of any floating type.
  DType number(std::string_view what, View const& v) const {
    view(bool(v) && floating(v.dtype), what, v, "must be there and hold floating-point numbers");
    typed(what, v, v.dtype);
    return v.dtype;
  }
  void shaped(std::string_view what, View const& v, DType type, Dims const& dims) const {
    typed(what, v, type);
    view(dims == v, what, v, "has the wrong shape");
  }
  /// Same type and shape as `model`.
  void like(std::string_view what, View const& v, View const& model) const {
    typed(what, v, model.dtype);
    view(same_shape(v, model), what, v, "differs in shape from its fellow");
  }
  void line(std::string_view what, View const& v, DType type, std::int64_t n) const {
    typed(what, v, type);
    view(v.contiguous() && v.elements() == n, what, v, "must be contiguous and of matching length");
  }

 private:
  std::string_view op_;
};

}  // namespace shardmark::validation
