#include "metrics/allocations.hpp"

#include <atomic>

#include "backend/library_scope.hpp"

namespace shardmark {
namespace {

constinit std::atomic<std::uint64_t> ours{0}, in_libraries{0};

}  // namespace

void detail::count_allocation() noexcept { (library_depth > 0 ? in_libraries : ours).fetch_add(1, std::memory_order_relaxed); }

AllocationCounts allocations() { return {ours.load(std::memory_order_relaxed), in_libraries.load(std::memory_order_relaxed)}; }

bool allocations_are_counted() {
  // A direct call of the operator, unlike a new expression, may not be optimised away.
  auto const before = allocations();
  ::operator delete(::operator new(1));
  auto const made = allocations() - before;
  return made.ours + made.in_libraries > 0;
}

}  // namespace shardmark
