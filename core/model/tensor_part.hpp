#pragma once
// Which part of its cut layers a model holds.

#include <string>

#include "model/spec.hpp"

namespace shardmark {

/// Sequence parallelism (Korthikanti et al. 2022): between cut layers each part has its run of the rows (all samples' positions), the p-th
/// of equal ones, and not all of them.
enum class TokenRows : std::uint8_t { whole, cut };

/// One part of `parts`, as a rank of a tensor-parallel group holds it; or all of them (`part` = all_parts), as a serial twin does that adds
/// up in the ranks' order. parts = 1: nothing is cut.
struct TensorPart {
  static constexpr int all_parts = -1;
  static constexpr int most_chunks = 64;
  int parts = 1;
  int part = 0;
  TokenRows rows = TokenRows::whole;
  int chunks = 1;  // pieces of rows in which a row-parallel product is made; the sum of one overlaps the product of the next

  bool cuts() const { return parts > 1; }
  /// Of `n` things of which each part has equally many, those that this model holds.
  std::int64_t share(std::int64_t n) const { return part == all_parts ? n : n / parts; }
  /// This part of a dimension of `n`. @throws BadRequest when it isn't divisible
  Slice slice(int dim, std::int64_t n, std::string const& what) const;
  /// The same of any `n`: parts differ by one at most, larger ones first.
  Slice nearly_even(int dim, std::int64_t n) const;
};

/// Parameters that aren't cut are copies on every rank: they count once in norms.
void mark_copies(ModelSpec& spec, TensorPart part);

/// Piece `rank` of `size` of a dimension of `n`. @throws BadRequest that lists the valid divisors when it isn't divisible.
Slice even_slice(int dim, std::int64_t n, int size, int rank, std::string const& what);
/// The divisors of n up to 64, for messages: "1, 2, 3, 6".
std::string divisors(std::int64_t n);

}  // namespace shardmark
