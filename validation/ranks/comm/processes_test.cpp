// What only processes show.

#include <cstring>

#include "comm/fabric.hpp"
#include "comm/shared_file.hpp"
#include "validation/main/world.hpp"
#include "validation/ranks/comm/contract.hpp"

namespace shardmark::contract {
namespace {

constexpr MpiTuning seven_elements{.message_bytes = 7 * sizeof(float), .round_bytes = 7 * sizeof(float)};

TEST(Mpi, case_31_chunks_of_seven_elements_have_the_same_bits) {
  auto const whole = testing::session().world(), cut = testing::session().world(seven_elements);
  Pages const slab(std::size_t{4} << 20);
  Rank r(*whole, {slab.data(), slab.bytes()});
  constexpr std::int64_t elements = 1003;
  auto const awkward_tensor = [&] { return r.filled(DType::f32, elements, [&](std::int64_t i) { return awkward(r.me, i); }); };
  Tensor const a = awkward_tensor(), b = awkward_tensor();
  whole->post(r.stream, Exchange{Collective::all_reduce, a, a}).wait(r.stream);
  cut->post(r.stream, Exchange{Collective::all_reduce, b, b}).wait(r.stream);
  EXPECT_EQ(std::memcmp(a.view.data, b.view.data, a.view.bytes()), 0);
  EXPECT_EQ(difference(b.view, [&](std::int64_t i) { return tree_of_awkward(0, r.n, i); }), "");

  int const right = (r.me + 1) % r.n, left = (r.me + r.n - 1) % r.n;
  Tensor const sent = awkward_tensor(), got = r.make(DType::f32, elements), all = r.make(DType::f32, elements * r.n);
  Message const group[] = {{Direction::send, right, 0, sent}, {Direction::receive, left, 0, got}};
  cut->post(r.stream, group).wait(r.stream);
  EXPECT_EQ(difference(got.view, [&](std::int64_t i) { return awkward(left, i); }), "");
  for (Reduction reduction : {Reduction::fixed_tree, Reduction::vendor}) {
    cut->post(r.stream, Exchange{Collective::all_gather, sent, all, 0, reduction}).wait(r.stream);
    EXPECT_EQ(difference(all.view, [&](std::int64_t i) { return awkward(int(i / elements), i % elements); }), "");
  }
}

TEST(Peer, case_112_a_window_larger_than_the_shared_memory_is_refused_with_both_numbers) {
  std::size_t const too_much = shared_memory_free_bytes() + (std::size_t{1} << 20);
  try {
    testing::session().peer_world(too_much);
    ADD_FAILURE() << "accepted";
  } catch (BadRequest const& error) {
    std::string const text = error.what();
    EXPECT_NE(text.find("bytes needed"), std::string::npos) << text;
    EXPECT_NE(text.find("free"), std::string::npos) << text;
  }
}

TEST(Peer, a_full_window_is_refused) {
  auto const world = testing::session().peer_world(1 << 16);
  EXPECT_TRUE(world->symmetric(1 << 15).has_value());
  EXPECT_THROW(world->symmetric(1 << 16), BadRequest);
}

TEST(Mpi, versions_are_known) {
  EXPECT_NE(MpiSession::library_version(), "");
  EXPECT_NE(MpiSession::header_version(), "");
}

}  // namespace
}  // namespace shardmark::contract
