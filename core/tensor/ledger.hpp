#pragma once
// The ledger: live and peak bytes by category.

#include <array>
#include <cstdint>

#include "base/types.hpp"

namespace shardmark {

class Ledger {
 public:
  /// Adds `bytes` (negative: gives back) to a category. Unit: bytes as allocated, padding included.
  void book(Book category, std::int64_t bytes);
  std::int64_t live(Book category) const { return live_[std::size_t(category)]; }
  std::int64_t peak(Book category) const { return peak_[std::size_t(category)]; }
  std::int64_t live_total() const { return live_total_; }
  /// Largest sum over all categories at one moment (not the sum of the categories' peaks).
  std::int64_t peak_total() const { return peak_total_; }
  /// Peaks restart from what is live now.
  void reset_peaks();

 private:
  std::array<std::int64_t, books> live_{}, peak_{};
  std::int64_t live_total_ = 0, peak_total_ = 0;
};

}  // namespace shardmark
