#pragma once
// Where a result comes from: what a program can find out about itself and its surroundings.

#include <string>

#include "metrics/host.hpp"
#include "record/record.hpp"

namespace shardmark::record {

/// A random UUID (version 4).
std::string new_record_id();
/// Now, in UTC, as ISO 8601 to the second: 2026-12-04T09:31:07Z.
std::string utc_now();

/// The Slurm job that this process is part of, from its environment.
std::optional<Slurm> read_slurm();
/// Command line of the mpirun or srun that is this process's parent.
Measured<std::string> read_launcher();
/// Variables that change results (threads, libraries, transports, allocation), sorted, and the loaded modules.
Environment read_environment();
/// What this program was built from; binary_sha256 is that of the running executable.
Build read_build();
/// The parts of System that one node knows; the others stay "not measured".
System describe_system(HostInfo const& host);

/// What speaks against calling a result official, as far as the record itself tells. Launch sets and rounds are the caller's to judge when
/// launches_planned is not given.
std::vector<Unofficial> reasons_against(Record const& record);

}  // namespace shardmark::record
