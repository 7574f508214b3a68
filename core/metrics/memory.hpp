#pragma once
// Memory of this process as the kernel sees it, to hold the ledger against.

#include <cstdint>
#include <string>

#include "metrics/measured.hpp"

namespace shardmark {

/// Unit: bytes. PSS divides each shared page among its users, so that sums over ranks of a node are right; the kernel keeps no peak of it.
struct ProcessMemory {
  Measured<std::int64_t> pss;
  Measured<std::int64_t> rss;
  Measured<std::int64_t> rss_peak;  // since the process began
};
/// Reading PSS walks the page tables (milliseconds a gigabyte): not in timed steps.
ProcessMemory read_process_memory(std::string const& proc = "/proc");

/// What can still be allocated on this machine and in this process's control groups (version 2), without swapping.
Measured<std::int64_t> read_available_memory(std::string const& proc = "/proc", std::string const& sys = "/sys");

/// The largest PSS among the moments at which it was asked to look.
class PssPeak {
 public:
  void look();
  Measured<std::int64_t> const& peak() const { return peak_; }

 private:
  Measured<std::int64_t> peak_;
};

}  // namespace shardmark
