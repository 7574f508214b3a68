#pragma once
// How the hot operations become calls of kernels. Long ones are cut into pieces with a tick between; kernels give the same bits
// wherever they are cut.

#include <algorithm>

#include "backend/cpu/kernels.hpp"
#include "backend/cpu/library_matmul.hpp"
#include "backend/cpu/matmul_paths.hpp"
#include "backend/reference/loops_loss.hpp"

namespace shardmark::cpu {

using reference::row;

/// Elements of work between two ticks: about 50 microseconds.
inline constexpr std::int64_t piece = 1 << 16;

/// f(begin, end) over pieces of [0, n).
template <class F>
void each_piece(std::int64_t n, Stream& stream, F&& f) {
  for (std::int64_t begin = 0; begin < n; begin += piece) {
    f(begin, std::min(n, begin + piece));
    stream.tick();
  }
}

/// f(row) over all rows, `width` elements of work each.
template <class F>
void each_row_index(std::int64_t rows, std::int64_t width, Stream& stream, F&& f) {
  std::int64_t done = 0;
  for (std::int64_t r = 0; r < rows; ++r) {
    f(r);
    if ((done += width) < piece) continue;
    done = 0;
    stream.tick();
  }
}

/// f(pointers, elements) over the rows of views of one shape; pieces of one long row where all are contiguous.
template <class T, class F, class... V>
void each_run(Stream& stream, F&& f, View const& first, V const&... others) {
  if (first.contiguous() && (others.contiguous() && ...))
    return each_piece(first.elements(), stream, [&](std::int64_t begin, std::int64_t end) {
      f(end - begin, first.as<T>() + begin, (others.template as<T>() + begin)...);
    });
  std::int64_t const n = columns_of(first);
  each_row_index(rows_of(first), n, stream, [&](std::int64_t r) { f(n, row<T>(first, r), row<T>(others, r)...); });
}

template <class T, class C = T>
MatmulCall<T, T, C> matmul_call(Matmul const& o) {
  MatmulCall<T, T, C> call{.a = o.a.as<T>(),
                           .b = o.b.as<T>(),
                           .c = o.c.as<C>(),
                           .lda = o.a.stride[0],
                           .ldb = o.b.stride[0],
                           .ldc = o.c.stride[0],
                           .m = o.c.shape[0],
                           .n = o.c.shape[1],
                           .k = o.a.shape[o.ta == Transpose::no ? 1 : 0],
                           .ta = o.ta,
                           .tb = o.tb,
                           .write = o.write,
                           .epilogue = o.epilogue};
  if (o.bias) call.bias = o.bias.as<T>();
  if (o.aux) call.aux = o.aux.as<C>(), call.ldaux = o.aux.stride[0];
  return call;
}

template <class T>
void run(Kernels<T> const& k, Stream& stream, Matmul const& o) {
  if (o.c.dtype == o.a.dtype)
    k.matmul(matmul_call<T>(o), scratch_of_thread(), stream);
  else
    k.matmul_sums(matmul_call<T, Accumulator<T>>(o), scratch_of_thread(), stream);
}

template <class T, class C>
ProductShape shape_of(MatmulCall<T, T, C> const& call) {
  return {call.m, call.n, call.k, call.ta, call.tb, dtype_of<T>(), dtype_of<C>()};
}

/// The same by what is fastest; after oneDNN bias and GELU in one pass (fusing them gains nothing, and training needs the value between).
inline void run_fastest(InstructionSet const& set, Stream& stream, Matmul const& o) {
  constexpr std::array of{Path::library, Path::packed, Path::own};
  MatmulCall<float> const call = matmul_call<float>(o);
  if (call.k == 0) return set.f32.matmul(call, scratch_of_thread(), stream);
  scratch_of_thread();  // limits the library's threads
  by_fastest_path(shape_of(call), call.write, of, [&](Path path) {
    if (path == Path::own) return set.f32.matmul(call, scratch_of_thread(), stream);
    path == Path::packed ? packed_matmul(call) : library_matmul(call);
    stream.tick();
    if (call.epilogue == Epilogue::none) return;
    each_row_index(call.m, call.n, stream, [&](std::int64_t r) { set.epilogue(call, r, r + 1); });
  });
}

template <class T>
void run(Kernels<T> const& k, Stream& stream, Gelu const& o) {
  each_run<T>(
      stream, [&](std::int64_t n, T const* x, T* y) { k.gelu(x, y, n); }, o.x, o.y);
}
/// In bf16 the library adds the bias too, before it rounds. The value between bias and GELU goes to aux, or else through c.
template <class C>
void run_library_bfloat16(InstructionSet const& set, Stream& stream, Matmul const& o) {
  constexpr std::array of{Path::library, Path::packed};  // the own kernels, which widen to fp32, are slower by nature
  MatmulCall<bfloat16, bfloat16, C> call = matmul_call<bfloat16, C>(o);
  if (call.k == 0) return run(set.bf16, stream, o);
  scratch_of_thread();
  bool const gelu = call.epilogue == Epilogue::bias_gelu;
  if (gelu && call.aux != nullptr) call.c = call.aux, call.ldc = call.ldaux;
  by_fastest_path(shape_of(call), call.write, of, [&](Path path) {
    path == Path::packed ? packed_matmul(call) : library_matmul(call);
    stream.tick();
  });
  Gelu const rest{o.aux ? o.aux : o.c, o.c};
  if (gelu) std::is_same_v<C, float> ? run(set.f32, stream, rest) : run(set.bf16, stream, rest);
}

template <class T>
void run(Kernels<T> const& k, Stream& stream, GeluInput const& o) {
  each_run<T>(
      stream, [&](std::int64_t n, T const* x, T const* dy, T* dx) { k.gelu_input(x, dy, dx, n); }, o.x, o.dy, o.dx);
}
template <class T>
void run(Kernels<T> const& k, Stream& stream, Relu const& o) {
  each_run<T>(
      stream, [&](std::int64_t n, T const* x, T* y) { k.relu(x, y, n); }, o.x, o.y);
}
template <class T>
void run(Kernels<T> const& k, Stream& stream, ReluInput const& o) {
  each_run<T>(
      stream, [&](std::int64_t n, T const* y, T const* dy, T* dx) { k.relu_input(y, dy, dx, n); }, o.y, o.dy, o.dx);
}

template <class T>
void run(Kernels<T> const& k, Stream& stream, SumTree const& o) {
  each_piece(o.out.elements(), stream,
             [&](std::int64_t begin, std::int64_t end) { k.sum_tree(o.in, o.out.as<T>() + begin, begin, end - begin); });
}
template <class T>
void run(Kernels<T> const& k, Stream& stream, NormLeaves const& o) {
  T const* const x = o.x.as<T>();
  double* const leaves = o.leaves.as<double>();
  each_piece(o.x.elements(), stream, [&](std::int64_t begin, std::int64_t end) {
    static_assert(piece % norm_leaf == 0);
    for (std::int64_t i = begin; i < end; i += norm_leaf) leaves[i / norm_leaf] = k.norm_leaf(x + i, std::min(norm_leaf, end - i));
  });
}
template <class T>
void run(Kernels<T> const& k, Stream& stream, FlagNonFinite const& o) {
  bool finite = true;
  each_run<T>(
      stream, [&](std::int64_t n, T const* x) { finite = finite && k.all_finite(x, n); }, o.x);
  if (!finite) *o.flag.as<double>() += 1;
}

template <class T>
void run(Kernels<T> const& k, Stream& stream, LayerNorm const& o) {
  using Sum = Accumulator<T>;
  std::int64_t const n = columns_of(o.x);
  each_row_index(rows_of(o.x), n, stream, [&](std::int64_t r) {
    k.layer_norm(row<T>(o.x, r), o.gamma.as<T>(), o.beta.as<T>(), row<T>(o.y, r), o.mean.as<Sum>() + r, o.rstd.as<Sum>() + r, o.epsilon, n);
  });
}
template <class T>
void run(Kernels<T> const& k, Stream& stream, LayerNormInput const& o) {
  using Sum = Accumulator<T>;
  std::int64_t const n = columns_of(o.x);
  each_row_index(rows_of(o.x), n, stream, [&](std::int64_t r) {
    k.layer_norm_input(row<T>(o.dy, r), row<T>(o.x, r), o.gamma.as<T>(), o.mean.as<Sum>()[r], o.rstd.as<Sum>()[r], row<T>(o.dx, r), n);
  });
}

template <class T>
void run(Kernels<T> const& k, Stream& stream, CrossEntropy const& o) {
  std::int64_t const n = columns_of(o.logits), rows = rows_of(o.logits);
  std::int32_t const* const target = o.target.as<std::int32_t>();
  double counted = 0, correct = 0;
  std::int64_t done = 0;
  auto row_loss = [&](std::int64_t r) {
    T* const dlogits = o.dlogits ? row<T>(o.dlogits, r) : nullptr;
    if ((done += n) >= piece) done = 0, stream.tick();
    if (target[r] == -1) {
      if (dlogits != nullptr) std::fill_n(dlogits, n, T(0));
      return 0.0;
    }
    expect(target[r] >= 0 && target[r] < n, "cross_entropy: a target lies outside the vocabulary");
    RowLoss const loss = k.cross_entropy(row<T>(o.logits, r), target[r], o.scale, dlogits, n);
    counted += 1;
    correct += loss.correct ? 1 : 0;
    return loss.loss;
  };
  double const loss = reference::tree_sum<double>(rows, row_loss);
  reference::add_tally(o.tally, loss, counted, correct);
}

}  // namespace shardmark::cpu
