#include "backend/cpu/library_matmul.hpp"

#include <dnnl.h>

#include <array>
#include <dnnl.hpp>
#include <map>
#include <span>
#include <type_traits>
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

template <class T>
constexpr DataType data_type() {
  return std::is_same_v<T, float> ? DataType::f32 : DataType::bf16;
}

/// How b lies in memory: as the caller has it, or as the primitive likes it best, into which it is copied before each product.
enum class Layout : std::uint8_t { plain, packed };

/// What a primitive is made for; only the addresses change from call to call.
struct Recipe {
  std::int64_t m, n, k, lda, ldb, ldc;
  Transpose ta, tb;
  Write write;
  bool bias;
  Layout layout;
  DataType operands, output;
  auto operator<=>(Recipe const&) const = default;
};

/// A matrix as the library sees it: a transposed one has its strides swapped.
dnnl::memory::desc matrix(std::int64_t rows, std::int64_t columns, DataType type, std::int64_t stride, Transpose transpose) {
  bool const flip = transpose == Transpose::yes;
  return {{rows, columns}, type, {flip ? 1 : stride, flip ? stride : 1}};
}

/// One primitive and its memory objects.
class Product {
 public:
  explicit Product(Recipe const& r) : stream_(library_engine()) {
    auto const a = matrix(r.m, r.k, r.operands, r.lda, r.ta), b = matrix(r.k, r.n, r.operands, r.ldb, r.tb);
    auto const c = matrix(r.m, r.n, r.output, r.ldc, Transpose::no);
    dnnl::memory::desc const bias{{1, r.n}, r.operands, {r.n, 1}}, any{{r.k, r.n}, r.operands, dnnl::memory::format_tag::any};
    dnnl::memory::desc const& wanted = r.layout == Layout::packed ? any : b;
    dnnl::primitive_attr attributes;
    if (r.write == Write::accumulate) {
      dnnl::post_ops sum;
      sum.append_sum(1.0f);
      attributes.set_post_ops(sum);
    }
    dnnl::matmul::desc const what = r.bias ? dnnl::matmul::desc(a, wanted, bias, c) : dnnl::matmul::desc(a, wanted, c);
    dnnl::matmul::primitive_desc const chosen(what, attributes, library_engine());
    primitive_ = dnnl::matmul(chosen);
    for (auto const& desc : {a, chosen.weights_desc(), c}) memories_.emplace_back(desc, library_engine(), nullptr);
    if (r.bias) memories_.emplace_back(bias, library_engine(), nullptr);
    if (chosen.weights_desc() == b) return;
    plain_ = dnnl::memory(b, library_engine(), nullptr);
    pack_ = dnnl::reorder(plain_, memories_[1]);
    packed_bytes_ = chosen.weights_desc().get_size();
  }

  /// @param addresses  of a, b, c, bias
  void run(std::array<void const*, 4> addresses) {
    if (packed_bytes_ > 0) addresses[1] = pack(addresses[1]);
    constexpr std::array<int, 4> roles{DNNL_ARG_SRC, DNNL_ARG_WEIGHTS, DNNL_ARG_DST, DNNL_ARG_BIAS};
    std::array<dnnl_exec_arg_t, 4> arguments{};
    for (std::size_t i = 0; i < memories_.size(); ++i) {
      memories_[i].set_data_handle(const_cast<void*>(addresses[i]));
      arguments[i] = {roles[i], memories_[i].get()};
    }
    execute(primitive_, std::span(arguments).first(memories_.size()));
  }

 private:
  void const* pack(void const* b) {
    void* const room = scratch_of_thread().sums<std::byte>(std::int64_t(packed_bytes_));
    plain_.set_data_handle(const_cast<void*>(b));
    memories_[1].set_data_handle(room);
    std::array<dnnl_exec_arg_t, 2> const arguments{{{DNNL_ARG_FROM, plain_.get()}, {DNNL_ARG_TO, memories_[1].get()}}};
    execute(pack_, arguments);
    return room;
  }
  /// By the plain C function: the other one makes a map of the arguments in each call.
  void execute(dnnl::primitive const& primitive, std::span<dnnl_exec_arg_t const> arguments) {
    dnnl_status_t const status = dnnl_primitive_execute(primitive.get(), stream_.get(), int(arguments.size()), arguments.data());
    invariant(status == dnnl_success, "oneDNN refused a matrix product");
  }

  dnnl::stream stream_;
  dnnl::matmul primitive_;
  std::vector<dnnl::memory> memories_;  // a, b as the primitive reads it, c, bias
  dnnl::memory plain_;
  dnnl::reorder pack_;
  std::size_t packed_bytes_ = 0;  // 0: b is read where it lies
};

Product& product_for(Recipe const& recipe) {
  thread_local std::map<Recipe, Product> products;
  auto const at = products.find(recipe);
  return at != products.end() ? at->second : products.emplace(recipe, Product(recipe)).first->second;
}

template <class T, class C>
void multiply(MatmulCall<T, T, C> const& g, Layout layout) {
  if (g.m == 0 || g.n == 0) return;
  LibraryScope const scope;
  // The bias of fp32 is added in a pass of its own, together with gelu.
  T const* const bias = std::is_same_v<T, float> ? nullptr : g.bias;
  product_for({g.m, g.n, g.k, g.lda, g.ldb, g.ldc, g.ta, g.tb, g.write, bias != nullptr, layout, data_type<T>(), data_type<C>()})
      .run({g.a, g.b, g.c, bias});
}

}  // namespace

bool library_has_bfloat16() {
  // A set of bits, in which each instruction set includes those that it builds on.
  static bool const has = (dnnl_get_effective_cpu_isa() & dnnl_cpu_isa_avx512_core_bf16) == dnnl_cpu_isa_avx512_core_bf16;
  return has;
}
void packed_matmul(MatmulCall<float> const& call) { multiply(call, Layout::packed); }
void library_matmul(MatmulCall<bfloat16> const& call) { multiply(call, Layout::plain); }
void library_matmul(MatmulCall<bfloat16, bfloat16, float> const& call) { multiply(call, Layout::plain); }
void packed_matmul(MatmulCall<bfloat16> const& call) { multiply(call, Layout::packed); }
void packed_matmul(MatmulCall<bfloat16, bfloat16, float> const& call) { multiply(call, Layout::packed); }

}  // namespace shardmark::cpu
