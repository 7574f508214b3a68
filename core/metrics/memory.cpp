#include "metrics/memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>

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

/// The number that follows `start`; nothing when the text begins otherwise ("max": no limit).
std::optional<std::int64_t> number_after(Measured<std::string> const& text, std::string_view start) {
  std::int64_t number = 0;
  if (!text || !text->starts_with(start)) return {};
  char const* const end = text->data() + text->size();
  if (std::from_chars(text->data() + start.size(), end, number).ec != std::errc()) return {};
  return number;
}

}  // namespace

ProcessMemory read_process_memory(std::string const& proc) {
  std::string const rollup_path = proc + "/self/smaps_rollup", status_path = proc + "/self/status";
  auto const rollup = read_file(rollup_path), status = read_file(status_path);
  return {.pss = kilobytes(rollup, "Pss", rollup_path),
          .rss = kilobytes(status, "VmRSS", status_path),
          .rss_peak = kilobytes(status, "VmHWM", status_path)};
}

Measured<std::int64_t> read_available_memory(std::string const& proc, std::string const& sys) {
  std::string const meminfo = proc + "/meminfo", groups = proc + "/self/cgroup";
  Measured<std::int64_t> available = kilobytes(read_file(meminfo), "MemAvailable", meminfo);
  auto const group = field_of(read_file(groups), "0", groups);  // version 2: "0::/folder"
  if (!available || !group) return available;
  // Limits of the groups around this one hold too: Slurm sets its on the job. Page cache in a group can be given up, so it isn't counted.
  for (std::filesystem::path folder = std::string_view(*group).substr(1);; folder = folder.parent_path()) {
    std::string const at = sys + "/fs/cgroup" + folder.native();
    auto const limit = number_after(read_file(at + "/memory.max"), ""), used = number_after(read_file(at + "/memory.stat"), "anon ");
    if (limit && used) available = std::min(*available, std::max<std::int64_t>(0, *limit - *used));
    if (!folder.has_relative_path()) return available;
  }
}

void PssPeak::look() {
  auto const now = read_process_memory().pss;
  if (!peak_ || (now && *now > *peak_)) peak_ = now;
}

}  // namespace shardmark
