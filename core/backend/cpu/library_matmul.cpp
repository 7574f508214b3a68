#include "backend/cpu/library_matmul.hpp"

#include <dnnl.h>

#include <array>
#include <dnnl.hpp>
#include <map>
#include <vector>

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

namespace {

using DataType = dnnl::memory::data_type;

dnnl::engine const& library_engine() {
  static dnnl::engine const engine(dnnl::engine::kind::cpu, 0);
  return engine;
}

/// What a primitive is made for; only the addresses change from call to call.
struct Shape {
  std::int64_t m, n, k, lda, ldb, ldc;
  Transpose ta, tb;
  Write write;
  bool bias;
  DataType c;
  auto operator<=>(Shape const&) const = default;
};

/// A matrix as the library sees it: a transposed one has its strides swapped.
dnnl::memory::desc matrix(std::int64_t rows, std::int64_t columns, DataType type, std::int64_t stride, Transpose transpose) {
  bool const flip = transpose == Transpose::yes;
  return {{rows, columns}, type, {flip ? 1 : stride, flip ? stride : 1}};
}

/// One primitive and its memory objects.
class Product {
 public:
  explicit Product(Shape const& s) : stream_(library_engine()) {
    auto const a = matrix(s.m, s.k, DataType::bf16, s.lda, s.ta), b = matrix(s.k, s.n, DataType::bf16, s.ldb, s.tb);
    auto const c = matrix(s.m, s.n, s.c, s.ldc, Transpose::no);
    dnnl::memory::desc const bias{{1, s.n}, DataType::bf16, {s.n, 1}};
    dnnl::primitive_attr attributes;
    if (s.write == Write::accumulate) {
      dnnl::post_ops sum;
      sum.append_sum(1.0f);
      attributes.set_post_ops(sum);
    }
    dnnl::matmul::desc const what = s.bias ? dnnl::matmul::desc(a, b, bias, c) : dnnl::matmul::desc(a, b, c);
    primitive_ = dnnl::matmul(dnnl::matmul::primitive_desc(what, attributes, library_engine()));
    for (auto const& desc : {a, b, c}) memories_.emplace_back(desc, library_engine(), nullptr);
    if (s.bias) memories_.emplace_back(bias, library_engine(), nullptr);
  }
  /// By the plain C function: the other one makes a map of the arguments in each call.
  void run(std::array<void const*, 4> const& addresses) {
    constexpr std::array<int, 4> roles{DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST, DNNL_ARG_BIAS};
    std::array<dnnl_exec_arg_t, 4> arguments{};
    for (std::size_t i = 0; i < memories_.size(); ++i) {
      memories_[i].set_data_handle(const_cast<void*>(addresses[i]));
      arguments[i] = {roles[i], memories_[i].get()};
    }
    dnnl_status_t const status = dnnl_primitive_execute(primitive_.get(), stream_.get(), int(memories_.size()), arguments.data());
    invariant(status == dnnl_success, "oneDNN refused a matrix product in bf16");
  }

 private:
  dnnl::stream stream_;
  dnnl::matmul primitive_;
  std::vector<dnnl::memory> memories_;
};

Product& product_for(Shape const& shape) {
  thread_local std::map<Shape, Product> products;
  auto const at = products.find(shape);
  return at != products.end() ? at->second : products.emplace(shape, Product(shape)).first->second;
}

template <class C>
void multiply(MatmulCall<bfloat16, bfloat16, C> const& g, DataType type) {
  if (g.m == 0 || g.n == 0) return;
  LibraryScope const scope;
  product_for({g.m, g.n, g.k, g.lda, g.ldb, g.ldc, g.ta, g.tb, g.write, g.bias != nullptr, type}).run({g.a, g.b, g.c, g.bias});
}

}  // namespace

bool library_has_bfloat16() {
  // A set of bits, in which each instruction set includes those that it builds on.
  static bool const has = (dnnl_get_effective_cpu_isa() & dnnl_cpu_isa_avx512_core_bf16) == dnnl_cpu_isa_avx512_core_bf16;
  return has;
}
void library_matmul(MatmulCall<bfloat16> const& call) { multiply(call, DataType::bf16); }
void library_matmul(MatmulCall<bfloat16, bfloat16, float> const& call) { multiply(call, DataType::f32); }

}  // namespace shardmark::cpu
