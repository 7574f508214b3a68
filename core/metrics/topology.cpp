// What hwloc knows: cores, NUMA nodes, binding.

#include "metrics/topology.hpp"

#include <hwloc.h>

#include <algorithm>
#include <memory>

#include "base/error.hpp"
#include "metrics/host.hpp"

namespace shardmark {
namespace {

/// hwloc's description of this machine.
class Topology {
 public:
  Topology() { invariant(hwloc_topology_init(&handle_) == 0 && hwloc_topology_load(handle_) == 0, "hwloc describes this machine"); }
  ~Topology() { hwloc_topology_destroy(handle_); }
  Topology(Topology const&) = delete;
  Topology& operator=(Topology const&) = delete;
  hwloc_topology_t get() const { return handle_; }
  int count(hwloc_obj_type_t type) const { return hwloc_get_nbobjs_by_type(handle_, type); }

 private:
  hwloc_topology_t handle_ = nullptr;
};

struct FreeBitmap {
  void operator()(hwloc_bitmap_t bitmap) const { hwloc_bitmap_free(bitmap); }
};
using Bitmap = std::unique_ptr<hwloc_bitmap_s, FreeBitmap>;

/// Containers can hide cores and nodes; then each processor counts as a core, and memory as one node.
int at_least_one(int found, int otherwise) { return found > 0 ? found : otherwise; }

}  // namespace

void read_topology(HostInfo& host) {
  Topology const topology;
  host.threads = at_least_one(topology.count(HWLOC_OBJ_PU), 1);
  host.cores = at_least_one(topology.count(HWLOC_OBJ_CORE), host.threads);
  host.numa_nodes = at_least_one(topology.count(HWLOC_OBJ_NUMANODE), 1);
}

Binding read_binding() {
  Topology const topology;
  Bitmap const allowed(hwloc_bitmap_alloc());
  invariant(hwloc_get_cpubind(topology.get(), allowed.get(), HWLOC_CPUBIND_THREAD) == 0, "the kernel tells a thread's binding");
  Binding binding;
  for (int cpu = hwloc_bitmap_first(allowed.get()); cpu >= 0; cpu = hwloc_bitmap_next(allowed.get(), cpu)) {
    hwloc_obj_t const unit = hwloc_get_pu_obj_by_os_index(topology.get(), unsigned(cpu));
    if (unit == nullptr) continue;  // a bit beyond the machine: an unbound mask may be infinite
    binding.cpus.push_back(cpu);
    hwloc_obj_t const core = hwloc_get_ancestor_obj_by_type(topology.get(), HWLOC_OBJ_CORE, unit);
    binding.cores.push_back(int(core != nullptr ? core->logical_index : unit->logical_index));
    if (binding.numa < 0 && unit->nodeset != nullptr) binding.numa = hwloc_bitmap_first(unit->nodeset);
  }
  std::sort(binding.cores.begin(), binding.cores.end());
  binding.cores.erase(std::unique(binding.cores.begin(), binding.cores.end()), binding.cores.end());
  return binding;
}

}  // namespace shardmark
