#include <cmath>
#include <cstring>
#include <thread>
#include <vector>

#include "backend/bfloat16.hpp"
#include "comm/slices.hpp"
#include "validation/ranks/comm/contract.hpp"

namespace shardmark::contract {
namespace {

enum class Where { apart, in_place };

/// One collective with known numbers. Piece p of rank r's n x N send holds number(r, p N + i); a single piece holds number(r, i).
void check(Rank& r, Collective what, DType dtype, std::int64_t elements, int root, Where where, Reduction reduction) {
  PieceCounts const pieces = piece_counts(what, r.n, r.me, root);
  std::int64_t const N = elements;
  auto const sent = [&](std::int64_t i) { return number(r.me, i); };
  auto const piece_of = [&](Tensor const& t, int p) { return with_view(t, slice(t.view, 0, p * N, (p + 1) * N)); };

  Tensor send, recv;
  if (where == Where::apart) {
    if (pieces.send > 0) send = r.filled(dtype, pieces.send * N, sent);
    if (pieces.recv > 0) recv = r.make(dtype, pieces.recv * N);
  } else if (pieces.send >= pieces.recv) {
    send = r.filled(dtype, pieces.send * N, sent);
    if (pieces.recv > 0) recv = pieces.send > pieces.recv ? piece_of(send, r.me) : send;
  } else {
    recv = r.make(dtype, pieces.recv * N);
    if (pieces.send > 0) {
      send = pieces.recv > pieces.send ? piece_of(recv, r.me) : recv;
      for (std::int64_t i = 0; i < N; ++i) set(send.view, i, sent(i));
    }
  }
  r.run({what, send, recv, root, reduction, "test"});

  std::function<double(std::int64_t)> expected;
  switch (what) {
    case Collective::broadcast:
      expected = [&](std::int64_t i) { return number(root, i); };
      break;
    case Collective::all_reduce:
      expected = [&](std::int64_t i) { return sum_of_numbers(r.n, i); };
      break;
    case Collective::reduce_scatter:
      expected = [&](std::int64_t i) { return sum_of_numbers(r.n, r.me * N + i); };
      break;
    case Collective::all_gather:
    case Collective::gather:
      expected = [&](std::int64_t i) { return number(int(i / N), i % N); };
      break;
    case Collective::all_to_all:
      expected = [&](std::int64_t i) { return number(int(i / N), r.me * N + i % N); };
      break;
    case Collective::scatter:
      expected = [&](std::int64_t i) { return number(root, r.me * N + i); };
      break;
  }
  if (pieces.recv == 0) return;
  EXPECT_EQ(difference(recv.view, expected), "")
      << name(what) << " " << name(dtype) << " N=" << N << " root=" << root << (where == Where::in_place ? " in place" : "")
      << (reduction == Reduction::vendor ? " vendor" : " fixed tree") << " rank " << r.me;
}

constexpr Collective collectives[] = {Collective::broadcast,  Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather,
                                      Collective::all_to_all, Collective::gather,     Collective::scatter};
bool rooted(Collective what) { return what == Collective::broadcast || what == Collective::gather || what == Collective::scatter; }

void check_all(Rank& r, DType dtype, std::int64_t elements) {
  for (Collective what : collectives)
    for (Reduction reduction : {Reduction::fixed_tree, Reduction::vendor})
      for (Where where : {Where::apart, Where::in_place}) {
        check(r, what, dtype, elements, 0, where, reduction);
        if (rooted(what) && r.n > 1) check(r, what, dtype, elements, r.n - 1, where, reduction);
      }
}

TEST(Comm, every_collective_gives_the_exact_numbers_in_every_type) {
  on_each_world([](Rank& r) {
    for (DType dtype : {DType::f64, DType::f32, DType::bf16, DType::i64, DType::i32, DType::u8}) check_all(r, dtype, 29);
    EXPECT_EQ(r.world.outstanding(), 0);
  });
}

TEST(Comm, case_51_pieces_of_size_zero_enter) {
  on_each_world([](Rank& r) {
    for (std::int64_t elements : {0, 1, 3}) check_all(r, DType::f32, elements);
  });
}

TEST(Comm, tensors_larger_than_any_block_or_round) {
  on_each_world([](Rank& r) {
    for (Collective what : collectives)
      for (Where where : {Where::apart, Where::in_place}) check(r, what, DType::f32, 70'001, r.n / 2, where, Reduction::fixed_tree);
    check(r, Collective::all_reduce, DType::f32, 600'007, 0, Where::in_place, Reduction::fixed_tree);
    check(r, Collective::all_reduce, DType::f32, 150'001, 0, Where::in_place, Reduction::vendor);
  });
}

TEST(Comm, a_broadcast_root_may_give_no_send) {
  on_each_world([](Rank& r) {
    int const root = r.n - 1;
    Tensor const t = r.filled(DType::f64, 9, [&](std::int64_t i) { return number(r.me, i); });
    r.run({Collective::broadcast, {}, t, root});
    EXPECT_EQ(difference(t.view, [&](std::int64_t i) { return number(root, i); }), "");
  });
}

TEST(Comm, case_28_bits_do_not_depend_on_bucket_sizes) {
  on_each_world([](Rank& r) {
    constexpr std::int64_t elements = 3001;
    for (std::int64_t bucket : {7L, 256L, elements}) {
      Tensor const t = r.filled(DType::f32, elements, [&](std::int64_t i) { return awkward(r.me, i); });
      std::vector<Request> requests;
      for (std::int64_t at = 0; at < elements; at += bucket) {
        Tensor const piece = with_view(t, slice(t.view, 0, at, std::min(elements, at + bucket)));
        requests.push_back(r.post({Collective::all_reduce, piece, piece}));
      }
      for (Request& request : requests) request.wait(r.stream);
      EXPECT_EQ(difference(t.view, [&](std::int64_t i) { return tree_of_awkward(0, r.n, i); }), "") << "bucket " << bucket;
    }
  });
}

TEST(Comm, a_reduce_scatter_has_the_bits_of_the_all_reduce) {
  on_each_world([](Rank& r) {
    constexpr std::int64_t piece = 501;
    Tensor const send = r.filled(DType::f32, piece * r.n, [&](std::int64_t i) { return awkward(r.me, i); });
    Tensor const recv = r.make(DType::f32, piece);
    r.run({Collective::reduce_scatter, send, recv});
    EXPECT_EQ(difference(recv.view, [&](std::int64_t i) { return tree_of_awkward(0, r.n, r.me * piece + i); }), "");
  });
}

TEST(Comm, case_70_every_rank_gets_the_same_bits) {
  on_each_world([](Rank& r) {
    constexpr std::int64_t elements = 4099;
    Tensor const t = r.filled(DType::f32, elements, [&](std::int64_t i) { return awkward(r.me, i); });
    r.run({Collective::all_reduce, t, t});
    std::string_view const bits(reinterpret_cast<char const*>(t.view.data), t.view.bytes());
    Tensor const mine = r.make(DType::i64, 1), all = r.make(DType::i64, r.n);
    *mine.view.as<std::int64_t>() = std::int64_t(stream_of(bits));
    r.run({Collective::all_gather, mine, all});
    for (int p = 0; p < r.n; ++p) EXPECT_EQ(all.view.as<std::int64_t>()[p], *mine.view.as<std::int64_t>()) << "rank " << p;
  });
}

TEST(Comm, case_33_bf16_sums_in_fp32_and_rounds_once) {
  on_each_world([](Rank& r) {
    for (Reduction reduction : {Reduction::fixed_tree, Reduction::vendor}) {
      Tensor const t = r.filled(DType::bf16, 5, [&](std::int64_t) { return r.me == 0 ? 256 : 1; });
      r.run({Collective::all_reduce, t, t, 0, reduction});
      float const once = bfloat16(float(256 + r.n - 1));
      EXPECT_EQ(difference(t.view, [&](std::int64_t) { return once; }), "");
    }
  });
}

TEST(Comm, a_nan_on_any_rank_reaches_all) {
  on_each_world([](Rank& r) {
    Tensor const t = r.filled(DType::f32, 3, [&](std::int64_t i) { return r.me == r.n - 1 && i == 1 ? NAN : 1; });
    r.run({Collective::all_reduce, t, t});
    EXPECT_EQ(get(t.view, 0), r.n);
    EXPECT_TRUE(std::isnan(get(t.view, 1)));
  });
}

TEST(Comm, many_collectives_may_be_under_way_and_waited_for_in_any_order) {
  on_each_world([](Rank& r) {
    constexpr int many = 150;
    std::vector<Tensor> tensors;
    std::vector<Request> requests;
    for (int k = 0; k < many; ++k) {
      tensors.push_back(r.filled(DType::f64, 11, [&](std::int64_t i) { return number(r.me, i) + k; }));
      requests.push_back(r.post({Collective::all_reduce, tensors.back(), tensors.back()}));
    }
    for (int k = many; k-- > 0;) requests[std::size_t(k)].wait(r.stream);
    for (int k = 0; k < many; ++k)
      EXPECT_EQ(difference(tensors[std::size_t(k)].view, [&](std::int64_t i) { return sum_of_numbers(r.n, i) + k * r.n; }), "") << k;
    EXPECT_EQ(r.world.outstanding(), 0);
  });
}

TEST(Comm, a_request_can_be_tested_without_blocking) {
  on_each_world([](Rank& r) {
    Tensor const t = r.filled(DType::f32, 1000, [&](std::int64_t i) { return number(r.me, i); });
    Request request = r.post({Collective::all_reduce, t, t});
    EXPECT_TRUE(request.outstanding());
    while (!request.test()) std::this_thread::yield();
    EXPECT_EQ(r.world.outstanding(), 0);
    request.wait(r.stream);
    EXPECT_FALSE(request.outstanding());
    EXPECT_EQ(difference(t.view, [&](std::int64_t i) { return sum_of_numbers(r.n, i); }), "");
  });
}

TEST(Comm, case_54_overlap_rejected) {
  on_each_world([](Rank& r) {
    Tensor const t = r.make(DType::f32, 3 * r.n + 3);
    auto part = [&](std::int64_t begin, std::int64_t end) { return with_view(t, slice(t.view, 0, begin, end)); };
    EXPECT_THROW(r.run({Collective::all_reduce, part(0, 2), part(1, 3)}), Error);
    EXPECT_THROW(r.run({Collective::reduce_scatter, part(0, 3 * r.n), part(3 * r.me + 1, 3 * r.me + 4)}), Error);
    EXPECT_THROW(r.run({Collective::all_gather, part(3 * r.me + 1, 3 * r.me + 4), part(0, 3 * r.n)}), Error);
    EXPECT_THROW(r.run({Collective::all_to_all, part(0, 3 * r.n), part(1, 3 * r.n + 1)}), Error);
    Message const send{Direction::send, 0, 0, part(0, 3)}, receive{Direction::receive, 0, 0, part(2, 5)};
    EXPECT_THROW(r.post({send, receive}), Error);
    EXPECT_THROW(r.post({receive, receive}), Error);
    EXPECT_EQ(r.world.outstanding(), 0);
  });
}

TEST(Comm, what_does_not_fit_is_refused) {
  on_each_world([](Rank& r) {
    Tensor const a = r.make(DType::f32, 6), b = r.make(DType::f32, 5), c = r.make(DType::f64, 6), all = r.make(DType::f32, 6 * r.n);
    EXPECT_THROW(r.run({Collective::all_reduce, a, b}), Error);
    EXPECT_THROW(r.run({Collective::all_reduce, a, c}), Error);
    EXPECT_THROW(r.run({Collective::all_reduce, a, {}}), Error);
    EXPECT_THROW(r.run({Collective::all_gather, b, all}), Error);
    EXPECT_THROW(r.run({Collective::broadcast, {}, a, r.n}), Error);
    EXPECT_THROW(r.run({Collective::broadcast, {}, a, -1}), Error);
    Tensor square = a;
    square.view = reshape(a.view, {2, 3});
    Tensor const column = with_view(square, slice(square.view, 1, 0, 1));
    EXPECT_THROW(r.run({Collective::all_reduce, column, column}), Error);
    EXPECT_THROW(r.post({{Direction::send, r.n, 0, a}}), Error);
    EXPECT_THROW(r.post({{Direction::send, 0, channels, a}}), Error);
    EXPECT_THROW(r.post({{Direction::receive, 0, 0, column}}), Error);
    EXPECT_THROW(r.post({{Direction::receive, 0, 0, {}}}), Error);
    EXPECT_EQ(r.world.outstanding(), 0);
  });
}

}  // namespace
}  // namespace shardmark::contract
