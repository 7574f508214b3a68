#include "app/rounds.hpp"

#include <numeric>
#include <utility>

#include "base/random.hpp"

namespace shardmark {

std::vector<std::size_t> order_of_round(std::size_t n, std::uint64_t seed, int round) {
  std::vector<std::size_t> order(n);
  std::iota(order.begin(), order.end(), std::size_t(0));
  Randoms const random(seed, Purpose::order, std::uint64_t(round));
  for (std::size_t i = n; i > 1; --i) std::swap(order[i - 1], order[random.below(i, i)]);
  return order;
}

}  // namespace shardmark
