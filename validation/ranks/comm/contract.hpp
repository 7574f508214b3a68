#pragma once
// What every communicator must do. The same tests run on every implementation: threads.cpp and processes.cpp say which worlds there are.

#include <gtest/gtest.h>

#include <functional>
#include <string>

#include "backend/backend.hpp"
#include "comm/communicator.hpp"

namespace shardmark::contract {

/// One rank of a world, with memory.
class Rank {
 public:
  Rank(Communicator& group, Region slab);
  Tensor make(DType dtype, std::int64_t elements);
  /// Elements value(i).
  Tensor filled(DType dtype, std::int64_t elements, std::function<double(std::int64_t)> const& value);
  void run(Exchange const& exchange) { world.post(stream, exchange).wait(stream); }
  Request post(Exchange const& exchange) { return world.post(stream, exchange); }
  Request post(std::initializer_list<Message> group) { return world.post(stream, std::span(group.begin(), group.size())); }

  Communicator& world;
  int const me, n;
  HostStream stream{0};
  Ledger ledger;
  Arena arena;
};

/// Runs `body` on all ranks of each world that this program has.
void on_each_world(std::function<void(Rank&)> const& body);
/// The same for a body that ends its world.
void on_each_new_world(std::function<void(Rank&)> const& body);
/// Bytes of each rank's slab.
inline constexpr std::size_t slab_bytes = std::size_t{24} << 20;

double get(View const& view, std::int64_t i);
void set(View const& view, std::int64_t i, double value);

/// Small integers, different on each rank: sums over up to 8 ranks are exact in every type, bf16 and uint8 included.
inline double number(int rank, std::int64_t i) { return double((i * 7 + rank * 13) % 32); }
inline double sum_of_numbers(int ranks, std::int64_t i) {
  double sum = 0;
  for (int r = 0; r < ranks; ++r) sum += number(r, i);
  return sum;
}
/// Values whose sums depend on the order: many exponents, both signs.
float awkward(int rank, std::int64_t i);
/// The tree of base/sums.hpp, as its definition reads.
float tree_of_awkward(int first, int last, std::int64_t i);

/// "wrong at i: got, expected", or "" when element i is expected(i) for all i; one message for a tensor.
std::string difference(View const& view, std::function<double(std::int64_t)> const& expected);

}  // namespace shardmark::contract
