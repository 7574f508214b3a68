#pragma once
// Private to this folder.

namespace shardmark {

struct HostInfo;
/// Fills in cores, threads and NUMA nodes.
void read_topology(HostInfo& host);

}  // namespace shardmark
