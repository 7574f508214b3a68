#include "model/tensor_part.hpp"

#include <fmt/format.h>

#include "base/error.hpp"
#include "base/ranges.hpp"

namespace shardmark {

Slice TensorPart::slice(int dim, std::int64_t n, std::string const& what) const {
  if (!cuts()) return {};
  Slice const first = even_slice(dim, n, parts, std::max(part, 0), what);
  return part == all_parts ? Slice{dim, 0, n} : first;
}

Slice TensorPart::nearly_even(int dim, std::int64_t n) const {
  if (!cuts()) return {};
  if (part == all_parts) return {dim, 0, n};
  Range const own = piece_of(n, parts, part);
  return {dim, own.begin, own.end};
}

void mark_copies(ModelSpec& spec, TensorPart part) {
  if (!part.cuts() || part.part == TensorPart::all_parts) return;
  for (ParamSpec& param : spec.params)
    if (param.slice.dim < 0) param.replicated |= axes(Axis::tensor);
}

Slice even_slice(int dim, std::int64_t n, int size, int rank, std::string const& what) {
  if (n % size != 0)
    fail_input({fmt::format("{} {} can't be split over {} ranks", n, what, size), "it isn't divisible",
                fmt::format("choose one of {}", divisors(n))});
  return {dim, n / size * rank, n / size * (rank + 1)};
}

std::string divisors(std::int64_t n) {
  std::string out;
  for (std::int64_t d = 1; d <= n && d <= 64; ++d)
    if (n % d == 0) out += fmt::format("{}{}", out.empty() ? "" : ", ", d);
  return out;
}

}  // namespace shardmark
