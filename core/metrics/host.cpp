#include "metrics/host.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <sstream>

#include "metrics/files.hpp"
#include "metrics/topology.hpp"

namespace shardmark {
namespace {

/// "always [madvise] never" -> "madvise".
Measured<std::string> bracketed(Measured<std::string> const& text, std::string const& path) {
  if (!text) return text;
  auto const open = text->find('['), close = text->find(']');
  if (open == std::string::npos || close == std::string::npos || close < open) {
    return Measured<std::string>::missing(path + " marks no choice");
  }
  return text->substr(open + 1, close - open - 1);
}

Measured<bool> hypervisor_flag(Measured<std::string> const& cpuinfo, std::string const& path) {
  auto const flags = field_of(cpuinfo, "flags", path);
  if (!flags) return Measured<bool>::missing(flags.reason());
  return (" " + *flags + " ").find(" hypervisor ") != std::string::npos;
}

/// "quota period" or "max period" of cgroup v2's cpu.max, in processors.
std::optional<double> quota_in(std::string const& folder) {
  auto const text = read_file(folder + "/cpu.max");
  double quota = 0, period = 0;
  if (!text || !(std::istringstream(*text) >> quota >> period) || period <= 0) return std::nullopt;
  return quota / period;
}

/// The smallest quota of this process's control group and the groups around it.
std::optional<double> cgroup_quota(std::string const& proc, std::string const& sys) {
  auto const group = field_of(read_file(proc + "/self/cgroup"), "0", proc + "/self/cgroup");  // "0::/path"
  if (!group) return std::nullopt;
  std::string path = group->starts_with(':') ? group->substr(1) : *group;
  std::optional<double> smallest;
  for (;;) {
    if (auto const quota = quota_in(sys + "/fs/cgroup" + path); quota && (!smallest || *quota < *smallest)) smallest = quota;
    if (path.empty()) return smallest;
    path.erase(path.rfind('/'));
  }
}

}  // namespace

HostInfo read_host_info(std::string const& proc, std::string const& sys) {
  HostInfo host;
  std::array<char, 256> name{};
  gethostname(name.data(), name.size() - 1);
  host.hostname = name.data();
  utsname system{};
  if (uname(&system) == 0) host.kernel = system.release;
  host.boot_id = read_file(proc + "/sys/kernel/random/boot_id");
  auto const cpuinfo = read_file(proc + "/cpuinfo");
  host.cpu_model = field_of(cpuinfo, "model name", proc + "/cpuinfo");
  host.virtualised = hypervisor_flag(cpuinfo, proc + "/cpuinfo");
  host.cgroup_cpu_quota = cgroup_quota(proc, sys);
  host.governor = read_file(sys + "/devices/system/cpu/cpu0/cpufreq/scaling_governor");
  std::string const thp_path = sys + "/kernel/mm/transparent_hugepage/enabled";
  host.thp = bracketed(read_file(thp_path), thp_path);
  read_topology(host);
  return host;
}

std::string format_cpus(std::vector<int> const& cpus) {
  std::string out;
  for (std::size_t i = 0; i < cpus.size();) {
    std::size_t last = i;
    while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) ++last;
    out += fmt::format("{}{}", out.empty() ? "" : ",", cpus[i]);
    if (last > i) out += fmt::format("-{}", cpus[last]);
    i = last + 1;
  }
  return out;
}

Measured<CpuTicks> read_cpu_ticks(std::string const& proc) {
  auto const text = read_file(proc + "/stat");
  if (!text) return Measured<CpuTicks>::missing(text.reason());
  // "cpu user nice system idle iowait irq softirq steal guest guest_nice"; guest time is part of user time (proc(5)).
  std::istringstream line(*text);
  std::string label;
  line >> label;
  CpuTicks ticks;
  for (int field = 0; field < 8; ++field) {
    std::int64_t value = 0;
    if (!(line >> value)) return Measured<CpuTicks>::missing(proc + "/stat doesn't tell stolen time");
    ticks.total += value;
    if (field == 7) ticks.steal = value;
  }
  return ticks;
}

Measured<double> steal_percent(Measured<CpuTicks> const& before, Measured<CpuTicks> const& after) {
  if (!before) return Measured<double>::missing(before.reason());
  if (!after) return Measured<double>::missing(after.reason());
  if (after->total <= before->total) return Measured<double>::missing("no tick passed between the readings");
  return 100.0 * double(after->steal - before->steal) / double(after->total - before->total);
}

ProcessEvents read_process_events() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return {usage.ru_majflt, usage.ru_nivcsw};
}

Measured<double> read_mhz(int cpu, std::string const& proc) {
  std::string const path = proc + "/cpuinfo";
  auto const text = read_file(path);
  if (!text) return Measured<double>::missing(text.reason());
  std::string const start = fmt::format("processor\t: {}\n", cpu);
  auto const at = ("\n" + *text).find("\n" + start);
  if (at == std::string::npos) return Measured<double>::missing(fmt::format("{} has no processor {}", path, cpu));
  std::string const block = text->substr(at, text->find("\n\n", at) - at);
  auto const field = field_of(Measured<std::string>(block), "cpu MHz", path);
  if (!field) return Measured<double>::missing(field.reason());
  double mhz = 0;
  if (!(std::istringstream(*field) >> mhz)) return Measured<double>::missing(path + ": cpu MHz is no number");
  return mhz;
}

}  // namespace shardmark
