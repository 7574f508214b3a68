#pragma once
// The one check of MPI's return codes.

#include <mpi.h>

namespace shardmark::mpi {

/// @throws RankFailure with MPI's own text when `code` isn't MPI_SUCCESS. Communicators return errors (MPI_ERRORS_RETURN).
void check(int code, char const* function = __builtin_FUNCTION());

}  // namespace shardmark::mpi
