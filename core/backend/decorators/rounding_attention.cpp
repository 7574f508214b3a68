// Attention: rounding of scores and probabilities propagated to first order, one head at a time as S x S matrices.
//
// Everything is counted in units of sqrt(S) u, S the longest sum. A dot product over d has an error of sqrt(d) u |q||k|, that is
// sqrt(d / S) |q||k| of those units; a single rounding is 1 / sqrt(S).

#include "backend/decorators/rounding_parts.hpp"

namespace shardmark::rounding {
namespace {

constexpr auto no = Transpose::no;
constexpr auto yes = Transpose::yes;

/// [S,d] of one head of a [B,S,heads,d] view.
View head_of(View const& v, std::int64_t b, std::int64_t h) {
  View out = v;
  out.data += std::size_t(b * v.stride[0] + h * v.stride[2]) * width(v.dtype);
  out.rank = 2;
  out.shape = {v.shape[1], v.shape[3], 0, 0};
  out.stride = {v.stride[1], 1, 0, 0};
  return out;
}

/// Where head (b, h) begins in row-major [B,S,heads,d], and how far its rows lie apart.
struct HeadPlace {
  std::int64_t first, pitch;
  HeadPlace(View const& v, std::int64_t b, std::int64_t h)
      : first((b * v.shape[1] * v.shape[2] + h) * v.shape[3]), pitch(v.shape[2] * v.shape[3]) {}
};

void put(Dense& all, HeadPlace place, Dense const& head) {
  std::int64_t const rows = head.dim(0), n = head.dim(1);
  for (std::int64_t i = 0; i < rows; ++i)
    for (std::int64_t j = 0; j < n; ++j) all[place.first + i * place.pitch + j] = head[i * n + j];
}

Dense magnitude(Dense x) {
  return std::move(x.apply([](double v) { return std::abs(v); }));
}

template <class F>
void each_causal(std::int64_t length, F&& f) {
  for (std::int64_t i = 0; i < length; ++i)
    for (std::int64_t j = 0; j <= i; ++j) f(i, j, i * length + j);
}

double row_dot(Dense const& a, Dense const& b, std::int64_t i) {
  double sum = 0;
  for (std::int64_t j = 0; j < a.dim(1); ++j) sum += a[i * a.dim(1) + j] * b[i * b.dim(1) + j];
  return sum;
}

/// The scores of one head, unscaled, and the same sums over absolute values.
struct Scores {
  Dense value, absolute;
  Scores(Bench& bench, Dense& q, Dense& k) : value(bench.multiply(q, no, k, yes)) {
    Dense a = magnitude(q), b = magnitude(k);
    absolute = bench.multiply(a, no, b, yes);
  }
};

/// Causal softmax of scale s_i; returns log-sum-exp.
double softmax_row(Dense const& s, double scale, std::int64_t i, double* p) {
  double const* const row = s.values().data() + i * s.dim(1);
  double highest = scale * row[0], sum = 0;
  for (std::int64_t j = 1; j <= i; ++j) highest = std::max(highest, scale * row[j]);
  for (std::int64_t j = 0; j <= i; ++j) sum += p[j] = std::exp(scale * row[j] - highest);
  for (std::int64_t j = 0; j <= i; ++j) p[j] /= sum;
  return highest + std::log(sum);
}

}  // namespace

// y_i = sum_j p_ij v_j. An error e_ij of score (i, j) moves y_i by p_ij e_ij (v_j - y_i), and lse_i by p_ij e_ij.
void attention(Analysis& to, Attention const& o) {
  std::int64_t const batch = o.q.shape[0], length = o.q.shape[1], heads = o.q.shape[2], d = o.q.shape[3];
  double const dot_unit = std::sqrt(double(d) / double(length)), one = 1 / std::sqrt(double(length));
  Dense y(o.y.dims()), lse(o.lse.dims());
  for (std::int64_t b = 0; b < batch; ++b)
    for (std::int64_t h = 0; h < heads; ++h) {
      Dense q = to.bench.load(head_of(o.q, b, h)), k = to.bench.load(head_of(o.k, b, h)), v = to.bench.load(head_of(o.v, b, h));
      Scores const scores(to.bench, q, k);
      Dense p{length, length}, moved{length, length};
      std::vector<double> log_sums(static_cast<std::size_t>(length));
      for (std::int64_t i = 0; i < length; ++i)
        log_sums[std::size_t(i)] = softmax_row(scores.value, o.scale, i, p.values().data() + i * length);
      each_causal(length, [&](std::int64_t, std::int64_t, std::int64_t at) {
        // The score's own error, and exp's: its argument was rounded once more after the maximum was taken off.
        moved[at] = p[at] * std::abs(o.scale) * scores.absolute[at] * (dot_unit + one);
      });
      Dense total = p;
      for (std::int64_t i = 0; i < total.elements(); ++i) total[i] += moved[i];
      Dense values = magnitude(v), exact = to.bench.multiply(p, no, v, no), bound = to.bench.multiply(total, no, values, no);
      for (std::int64_t i = 0; i < length; ++i) {
        double sum_moved = 0;
        for (std::int64_t j = 0; j <= i; ++j) sum_moved += moved[i * length + j];
        for (std::int64_t c = 0; c < d; ++c) bound[i * d + c] += sum_moved * std::abs(exact[i * d + c]);
        // log of a sum of up to S terms; the sum's relative error is one unit.
        lse[(b * heads + h) * length + i] = std::abs(log_sums[std::size_t(i)]) * one + sum_moved + 1;
      }
      put(y, HeadPlace(o.y, b, h), bound);
    }
  to.add(o.y, std::move(y), double(length), StoredAs::storage);
  to.add(o.lse, std::move(lse), double(length), StoredAs::accumulator);
}

namespace {

/// What one head's backward needs: p, ds and the bounds of their errors.
struct Head {
  Dense q, k, v, y, dy, p, p_error, ds, ds_error;

  Head(Bench& bench, AttentionInput const& o, std::int64_t b, std::int64_t h)
      : q(bench.load(head_of(o.q, b, h))),
        k(bench.load(head_of(o.k, b, h))),
        v(bench.load(head_of(o.v, b, h))),
        y(bench.load(head_of(o.y, b, h))),
        dy(bench.load(head_of(o.dy, b, h))) {
    std::int64_t const length = q.dim(0), d = q.dim(1);
    double const dot_unit = std::sqrt(double(d) / double(length)), one = 1 / std::sqrt(double(length));
    Scores const scores(bench, q, k), products(bench, dy, v);
    Dense const lse = bench.load(o.lse), inner_dy = magnitude(dy), inner_y = magnitude(y);
    for (Dense* m : {&p, &p_error, &ds, &ds_error}) *m = Dense{length, length};
    each_causal(length, [&](std::int64_t i, std::int64_t, std::int64_t at) {
      double const s = o.scale * scores.value[at], log_sum = lse[(b * o.q.shape[2] + h) * length + i];
      double const inner = row_dot(dy, y, i), apart = products.value[at] - inner;
      double const apart_error =
          dot_unit * (products.absolute[at] + row_dot(inner_dy, inner_y, i)) + one * (std::abs(products.value[at]) + std::abs(inner));
      p[at] = std::exp(s - log_sum);
      p_error[at] = p[at] * (dot_unit * std::abs(o.scale) * scores.absolute[at] + one * (std::abs(s) + std::abs(log_sum) + 1));
      ds[at] = p[at] * apart;
      ds_error[at] = p_error[at] * std::abs(apart) + p[at] * apart_error;
    });
  }
};

/// |value| + error, the magnitudes of a factor in the next product.
Dense with_error(Dense const& value, Dense const& error) {
  Dense out = error;
  for (std::int64_t i = 0; i < out.elements(); ++i) out[i] += std::abs(value[i]);
  return out;
}

}  // namespace

// dv_j = sum_i p_ij dy_i; ds_ij = p_ij (dy_i v_j - dy_i y_i); dq_i = scale sum_j ds_ij k_j; dk_j = scale sum_i ds_ij q_i.
void attention_input(Analysis& to, AttentionInput const& o) {
  std::int64_t const batch = o.q.shape[0], length = o.q.shape[1], heads = o.q.shape[2];
  Dense dq(o.q.dims()), dk(o.q.dims()), dv(o.q.dims());
  auto scaled = [&](Dense x) { return std::move(x.apply([&](double value) { return std::abs(o.scale) * value; })); };
  for (std::int64_t b = 0; b < batch; ++b)
    for (std::int64_t h = 0; h < heads; ++h) {
      Head head(to.bench, o, b, h);
      HeadPlace const place(o.q, b, h);
      Dense p = with_error(head.p, head.p_error), ds = with_error(head.ds, head.ds_error);
      Dense q = magnitude(head.q), k = magnitude(head.k), dy = magnitude(head.dy);
      put(dv, place, to.bench.multiply(p, yes, dy, no));
      put(dq, place, scaled(to.bench.multiply(ds, no, k, no)));
      put(dk, place, scaled(to.bench.multiply(ds, yes, q, no)));
    }
  for (auto const& [view, bound] : {std::pair<View const*, Dense*>{&o.dq, &dq}, {&o.dk, &dk}, {&o.dv, &dv}})
    to.add(*view, std::move(*bound), double(length), StoredAs::storage);
}

}  // namespace shardmark::rounding
