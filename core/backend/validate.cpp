// What every backend refuses before it computes: wrong shapes, types, strides and overlaps.

#include "backend/validate_check.hpp"
#include "backend/validate_images.hpp"

namespace shardmark {
namespace {

using validation::Check;
using validation::Dims;
using validation::floating;

/// Outputs that may be the same view as an input.
bool may_alias(Op const& op, View const& in, View const& out) {
  bool const same = in.data == out.data && same_shape(in, out) && in.stride == out.stride && in.dtype == out.dtype;
  if (!same) return false;
  if (auto const* o = std::get_if<GeluInput>(&op)) return &in == &o->dy;
  if (auto const* o = std::get_if<ReluInput>(&op)) return &in == &o->dy;
  if (auto const* o = std::get_if<BatchNormInput>(&op)) return &in == &o->dy;
  if (auto const* o = std::get_if<CrossEntropy>(&op)) return &in == &o->logits;
  if (auto const* o = std::get_if<SlicedCrossEntropy>(&op)) return &in == &o->logits;
  if (auto const* o = std::get_if<SgdUpdate>(&op)) return &in == &o->weight && &out == &o->out;
  if (auto const* o = std::get_if<AdamWUpdate>(&op)) return &in == &o->weight && &out == &o->out;
  return std::holds_alternative<SumTree>(op) || std::holds_alternative<Dropout>(op) || std::holds_alternative<Relu>(op);
}

void check_overlaps(Op const& op, Check const& check) {
  each_view(op, [&](View const& out, Access out_access) {
    if (!writes_to(out_access)) return;
    each_view(op, [&](View const& other, Access access) {
      if (&other == &out || !share_elements(out, other)) return;
      check.view(access == Access::read && may_alias(op, other, out), "an output", out, "overlaps another view");
    });
  });
}

struct Validate : validation::Images {
  using validation::Images::operator();

  void operator()(Matmul const& o) const {
    DType const type = check.number("a", o.a);
    check.number("b", o.b);
    check.number("c", o.c);
    check.that(o.a.rank == 2 && o.b.rank == 2 && o.c.rank == 2, "a, b and c are matrices");
    bool const flip_a = o.ta == Transpose::yes, flip_b = o.tb == Transpose::yes;
    std::int64_t const m = o.a.shape[flip_a ? 1 : 0], k = o.a.shape[flip_a ? 0 : 1], n = o.b.shape[flip_b ? 0 : 1];
    check.shaped("b", o.b, type, flip_b ? Dims{n, k} : Dims{k, n});
    check.that(o.c.dtype == type || o.c.dtype == accumulator(type), "c has the type of a and b, or their accumulator's");
    check.shaped("c", o.c, o.c.dtype, {m, n});
    check.that(o.epilogue == Epilogue::none || o.write == Write::overwrite, "an epilogue needs a product that overwrites c");
    check.that(bool(o.bias) == (o.epilogue != Epilogue::none), "bias goes with an epilogue");
    check.that(!o.aux || o.epilogue == Epilogue::bias_gelu, "aux goes with bias_gelu");
    if (o.bias) check.line("bias", o.bias, type, n);
    if (o.aux) check.like("aux", o.aux, o.c);
  }
  void operator()(SumTree const& o) const {
    check.that(!o.in.empty(), "a sum has at least one input");
    check.line("out", o.out, o.out.dtype, o.out.elements());
    for (View const& in : o.in) check.line("in", in, o.out.dtype, o.out.elements());
  }
  void operator()(ColumnSum const& o) const {
    DType const type = check.number("x", o.x);
    check.line("y", o.y, accumulator(type), columns_of(o.x));
  }

  void operator()(LayerNorm const& o) const {
    DType const type = check.number("x", o.x);
    check.like("y", o.y, o.x);
    check.line("gamma", o.gamma, type, columns_of(o.x));
    check.line("beta", o.beta, type, columns_of(o.x));
    statistics(o.x, o.mean, o.rstd);
  }
  void operator()(LayerNormInput const& o) const {
    DType const type = check.number("x", o.x);
    check.like("dy", o.dy, o.x);
    check.like("dx", o.dx, o.x);
    check.line("gamma", o.gamma, type, columns_of(o.x));
    statistics(o.x, o.mean, o.rstd);
  }
  void operator()(LayerNormWeight const& o) const {
    DType const type = accumulator(check.number("x", o.x));
    check.like("dy", o.dy, o.x);
    statistics(o.x, o.mean, o.rstd);
    check.line("dgamma", o.dgamma, type, columns_of(o.x));
    check.line("dbeta", o.dbeta, type, columns_of(o.x));
  }
  void statistics(View const& x, View const& mean, View const& rstd) const {
    check.line("mean", mean, accumulator(x.dtype), rows_of(x));
    check.line("rstd", rstd, accumulator(x.dtype), rows_of(x));
  }

  void operator()(Gelu const& o) const { alike(o.x, o.y); }
  void operator()(GeluInput const& o) const { alike(o.x, o.dy), alike(o.x, o.dx); }
  void operator()(Relu const& o) const { alike(o.x, o.y); }
  void operator()(ReluInput const& o) const { alike(o.y, o.dy), alike(o.y, o.dx); }
  void alike(View const& a, View const& b) const {
    check.number("the first view", a);
    check.like("the second view", b, a);
  }

  void operator()(Attention const& o) const {
    heads("q", o.q, o.q);
    heads("k", o.k, o.q);
    heads("v", o.v, o.q);
    heads("y", o.y, o.q);
    log_sums(o.q, o.lse);
  }
  void operator()(AttentionInput const& o) const {
    heads("q", o.q, o.q);
    heads("k", o.k, o.q);
    heads("v", o.v, o.q);
    heads("y", o.y, o.q);
    heads("dy", o.dy, o.q);
    heads("dq", o.dq, o.q);
    heads("dk", o.dk, o.q);
    heads("dv", o.dv, o.q);
    log_sums(o.q, o.lse);
  }
  void heads(std::string_view what, View const& v, View const& q) const {
    check.number(what, v);
    check.view(v.rank == 4, what, v, "must be [batch, positions, heads, width]");
    check.like(what, v, q);
  }
  void log_sums(View const& q, View const& lse) const {
    check.line("lse", lse, accumulator(q.dtype), q.shape[0] * q.shape[1] * q.shape[2]);
  }

  void operator()(Embedding const& o) const {
    DType const type = check.number("table", o.table);
    check.that(o.table.rank == 2 && o.ids.rank == 2, "table and ids are matrices");
    std::int64_t const h = o.table.shape[1];
    check.line("ids", o.ids, DType::i32, o.ids.elements());
    check.shaped("y", o.y, type, {o.ids.shape[0], o.ids.shape[1], h});
    table_slice(o.slice, o.table);
    if (!o.positions) return;
    check.shaped("positions", o.positions, type, {o.positions.shape[0], h});
    check.that(o.positions.shape[0] >= o.ids.shape[1], "there are fewer positions than the sequence is long");
  }
  void operator()(EmbeddingWeight const& o) const {
    DType const type = accumulator(check.number("dy", o.dy));
    check.line("ids", o.ids, DType::i32, rows_of(o.dy));
    check.that(bool(o.dtable) && o.dtable.rank == 2, "dtable is a matrix");
    check.shaped("dtable", o.dtable, type, {o.dtable.shape[0], columns_of(o.dy)});
    table_slice(o.slice, o.dtable);
  }
  void table_slice(TableSlice const& slice, View const& table) const {
    check.that(slice.vocabulary == 0 || (slice.first >= 0 && slice.first + table.shape[0] <= slice.vocabulary),
               "the slice lies outside the table");
  }
  void operator()(PositionWeight const& o) const {
    DType const type = accumulator(check.number("dy", o.dy));
    check.that(o.dy.rank == 3 && o.dpositions.rank == 2, "dy is [batch, positions, width], dpositions a matrix");
    check.shaped("dpositions", o.dpositions, type, {o.dpositions.shape[0], o.dy.shape[2]});
    check.that(o.dpositions.shape[0] >= o.dy.shape[1], "there are fewer positions than the sequence is long");
  }

  void operator()(Dropout const& o) const {
    alike(o.x, o.y);
    check.that(o.x.rank >= 2, "x is [samples, ...]");
    check.that(o.p >= 0 && o.p < 1, "the probability lies in [0, 1)");
    check.line("samples", o.samples, DType::i64, 2 * o.x.shape[0]);
    check.that(o.full_width == 0 || (o.first_element >= 0 && o.first_element + columns_of(o.x) <= o.full_width),
               "the shard lies outside the full tensor");
  }

  void operator()(CrossEntropy const& o) const {
    check.number("logits", o.logits);
    check.line("target", o.target, DType::i32, rows_of(o.logits));
    check.line("tally", o.tally, DType::f64, 3);
    if (o.dlogits) check.like("dlogits", o.dlogits, o.logits);
  }
  void operator()(SoftmaxPart const& o) const {
    DType const type = accumulator(check.number("logits", o.logits));
    check.that(o.first >= 0, "the slice lies outside the vocabulary");
    check.line("target", o.target, DType::i32, rows_of(o.logits));
    check.line("part", o.part, type, softmax_part_size * rows_of(o.logits));
  }
  void operator()(SlicedCrossEntropy const& o) const {
    DType const type = accumulator(check.number("logits", o.logits));
    std::int64_t const rows = rows_of(o.logits);
    check.that(o.first >= 0, "the slice lies outside the vocabulary");
    check.line("target", o.target, DType::i32, rows);
    check.that(o.parts.rank == 3 && o.parts.shape[0] > 0, "parts are [slices, rows, 4]");
    check.line("parts", o.parts, type, o.parts.shape[0] * rows * softmax_part_size);
    check.line("tally", o.tally, DType::f64, 3);
    if (o.dlogits) check.like("dlogits", o.dlogits, o.logits);
  }
  void operator()(SquaredError const& o) const {
    alike(o.y, o.target);
    check.line("tally", o.tally, DType::f64, 3);
    if (o.dy) check.like("dy", o.dy, o.y);
  }

  void operator()(Fill const& o) const { check.that(bool(o.to), "there is nothing to fill"); }
  void operator()(Copy const& o) const {
    check.that(bool(o.from) && bool(o.to) && same_shape(o.from, o.to), "both views must be there and of one shape");
    check.that(o.from.dtype == o.to.dtype || (floating(o.from.dtype) && floating(o.to.dtype)), "only floating-point types are cast");
  }

  void operator()(NormLeaves const& o) const {
    check.number("x", o.x);
    check.line("x", o.x, o.x.dtype, o.x.elements());
    check.line("leaves", o.leaves, DType::f64, (o.x.elements() + norm_leaf - 1) / norm_leaf);
  }
  void operator()(TreeTotal const& o) const {
    check.line("x", o.x, DType::f64, o.x.elements());
    check.line("out", o.out, DType::f64, 1);
  }
  void operator()(Decide const& o) const {
    check.line("norm_squared", o.norm_squared, DType::f64, 1);
    check.line("totals", o.totals, DType::f64, 4);
    check.line("scalars", o.scalars, DType::f64, scalars);
  }
  void operator()(FlagNonFinite const& o) const {
    check.number("x", o.x);
    check.line("flag", o.flag, DType::f64, 1);
  }

  void operator()(SgdUpdate const& o) const {
    update(o);
    check.that(bool(o.momentum) == (o.factor != 0), "momentum goes with a factor");
    if (o.momentum) check.line("momentum", o.momentum, o.weight.dtype, o.weight.elements());
  }
  void operator()(AdamWUpdate const& o) const {
    update(o);
    check.line("first", o.first, o.weight.dtype, o.weight.elements());
    check.line("second", o.second, o.weight.dtype, o.weight.elements());
  }
  template <class Update>
  void update(Update const& o) const {
    DType const type = check.number("weight", o.weight);
    std::int64_t const n = o.weight.elements();
    check.that(type != DType::bf16, "weights are updated in fp32 or fp64");
    check.line("weight", o.weight, type, n);
    check.line("gradient", o.gradient, type, n);
    check.line("out", o.out, type, n);
    check.line("scalars", o.scalars, DType::f64, scalars);
    if (o.compute) check.line("compute", o.compute, check.number("compute", o.compute), n);
    check.that(0 <= o.decay_from && o.decay_from <= o.decay_to && o.decay_to <= n, "the decaying elements lie outside the piece");
  }
};

}  // namespace

void validate(Op const& op) {
  Check const check{name(op)};
  std::visit(Validate{{check}}, op);
  check_overlaps(op, check);
}

}  // namespace shardmark
