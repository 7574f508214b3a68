#include "metrics/memory.hpp"

#include <fmt/format.h>

#include <charconv>

#include "metrics/files.hpp"

namespace shardmark {
namespace {

/// "1234 kB" of line `key`, in bytes.
Measured<std::int64_t> kilobytes(Measured<std::string> const& text, std::string_view key, std::string const& path) {
  auto const field = field_of(text, key, path);
  if (!field) return Measured<std::int64_t>::missing(field.reason());
  std::int64_t kilo = 0;
  auto const [end, error] = std::from_chars(field->data(), field->data() + field->size(), kilo);
  if (error != std::errc() || std::string_view(end) != " kB") {
    return Measured<std::int64_t>::missing(fmt::format("{}: {} is not a number of kB", path, key));
  }
  return kilo * 1024;
}

}  // namespace

ProcessMemory read_process_memory(std::string const& proc) {
  std::string const rollup_path = proc + "/self/smaps_rollup", status_path = proc + "/self/status";
  auto const rollup = read_file(rollup_path), status = read_file(status_path);
  return {.pss = kilobytes(rollup, "Pss", rollup_path),
          .rss = kilobytes(status, "VmRSS", status_path),
          .rss_peak = kilobytes(status, "VmHWM", status_path)};
}

void PssPeak::look() {
  auto const now = read_process_memory().pss;
  if (!peak_ || (now && *now > *peak_)) peak_ = now;
}

}  // namespace shardmark
