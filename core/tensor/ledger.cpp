#include "tensor/ledger.hpp"

#include <algorithm>

#include "base/error.hpp"

namespace shardmark {

void Ledger::book(Book category, std::int64_t bytes) {
  auto& live = live_[std::size_t(category)];
  live += bytes;
  live_total_ += bytes;
  invariant(live >= 0, "more bytes were given back than were booked");
  auto& peak = peak_[std::size_t(category)];
  peak = std::max(peak, live);
  peak_total_ = std::max(peak_total_, live_total_);
}

void Ledger::reset_peaks() {
  peak_ = live_;
  peak_total_ = live_total_;
}

}  // namespace shardmark
