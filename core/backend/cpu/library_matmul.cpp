#include "backend/cpu/library_matmul.hpp"

#include <dnnl.h>

#include "backend/library_scope.hpp"

namespace shardmark::cpu {

void library_matmul(MatmulCall<float> const& g) {
  if (g.m == 0 || g.n == 0) return;
  auto letter = [](Transpose transpose) { return transpose == Transpose::yes ? 'T' : 'N'; };
  float const beta = g.write == Write::accumulate ? 1.0f : 0.0f;
  LibraryScope const scope;
  dnnl_status_t const status = dnnl_sgemm(letter(g.ta), letter(g.tb), g.m, g.n, g.k, 1.0f, g.a, g.lda, g.b, g.ldb, beta, g.c, g.ldc);
  invariant(status == dnnl_success, "dnnl_sgemm refused a matrix product");
}

}  // namespace shardmark::cpu
