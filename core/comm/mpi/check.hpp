#pragma once
// The one check of MPI's return codes.

#include <mpi.h>

#include <source_location>

namespace shardmark::mpi {

/// @throws RankFailure with MPI's own text when `code` isn't MPI_SUCCESS. Communicators return errors (MPI_ERRORS_RETURN).
void check(int code, std::source_location where = std::source_location::current());

}  // namespace shardmark::mpi
