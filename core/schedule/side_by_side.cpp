#include <algorithm>
#include <tuple>

#include "base/error.hpp"
#include "schedule/schedule.hpp"

namespace shardmark {
namespace {

/// Where an action stands: micro-batch of a replica, forward before backward, block in the direction of the pass, folds behind
/// backwards, replica. What ends the update comes last, in its own order.
auto place(Action const& action, SumShape leaves) {
  bool const forward = action.what == Do::forward;
  bool const computes = forward || action.what == Do::backward || action.what == Do::fold;
  int const last = computes ? 0 : 1;
  if (!computes) return std::tuple(last, 0, 0, 0, 0, 0);
  int const micro = action.micro.v % leaves.inner, replica = action.micro.v / leaves.inner;
  return std::tuple(last, micro, forward ? 0 : 1, forward ? action.chunk.v : -action.chunk.v, action.what == Do::fold ? 1 : 0, replica);
}

}  // namespace

Schedule side_by_side(Schedule refined) {
  expect(refined.form == Form::refined && refined.lanes.size() == 1 && refined.synchronous(), "a serial twin, refined");
  std::vector<Action>& body = refined.lanes.front().body;
  std::stable_sort(body.begin(), body.end(),
                   [&](Action const& a, Action const& b) { return place(a, refined.leaves) < place(b, refined.leaves); });
  return refined;
}

}  // namespace shardmark
