// Preloaded in front of MPI (case 18): every send is complete only when its receiver has asked for it, whatever its size, so that a rank
// that blocks in a send which nobody receives hangs with small messages too.

#include <mpi.h>

#include <cstdio>

namespace {
long sends = 0;
}

extern "C" {

int MPI_Isend(void const* data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm, MPI_Request* request) {
  ++sends;
  return PMPI_Issend(data, count, type, peer, tag, comm, request);
}

int MPI_Send(void const* data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm) {
  ++sends;
  return PMPI_Ssend(data, count, type, peer, tag, comm);
}

int MPI_Finalize() {
  std::fprintf(stderr, "rendezvous: %ld sends\n", sends);
  return PMPI_Finalize();
}
}
