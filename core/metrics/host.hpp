#pragma once
// The machine that a rank runs on.

#include <cstdint>
#include <string>
#include <vector>

#include "metrics/measured.hpp"

namespace shardmark {

/// Facts of a node, the same for all its ranks.
struct HostInfo {
  std::string hostname, kernel;
  Measured<std::string> boot_id;  // nodes that share it share a kernel, whatever they are called
  Measured<std::string> cpu_model;
  int cores = 0, threads = 0, numa_nodes = 0;  // that this process may see
  bool smt() const { return threads > cores; }
  Measured<bool> virtualised;  // the processor says that a hypervisor runs it
  /// In processors; no value and an empty reason: no limit.
  std::optional<double> cgroup_cpu_quota;
  Measured<std::string> governor;  // of processor 0
  Measured<std::string> thp;       // transparent huge pages: always, madvise, never
};
/// @param proc, sys  where those file systems are; tests give folders with copies.
HostInfo read_host_info(std::string const& proc = "/proc", std::string const& sys = "/sys");

/// Where the calling thread may run now.
struct Binding {
  std::vector<int> cpus;   // the system's numbers, ascending
  std::vector<int> cores;  // hwloc's logical numbers of their cores, ascending
  int numa = -1;           // of the first processor; -1: not known
};
Binding read_binding();
/// "0-3,8", as taskset and Slurm write it.
std::string format_cpus(std::vector<int> const& cpus);

/// Time that a hypervisor took from this machine's processors. Unit: ticks since boot, over all processors.
struct CpuTicks {
  std::int64_t total = 0, steal = 0;
};
Measured<CpuTicks> read_cpu_ticks(std::string const& proc = "/proc");
/// Per cent of all ticks between two readings.
Measured<double> steal_percent(Measured<CpuTicks> const& before, Measured<CpuTicks> const& after);

/// What the kernel did to this process since it began.
struct ProcessEvents {
  std::int64_t major_page_faults = 0, involuntary_switches = 0;
};
ProcessEvents read_process_events();
/// Clock frequency of a processor now. Unit: MHz.
Measured<double> read_mhz(int cpu, std::string const& proc = "/proc");

}  // namespace shardmark
