// Changes that leave a schedule right. The checker must let all of them pass, or it could refuse every broken one by refusing anything.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>

#include "planners.hpp"
#include "schedule/recompute.hpp"

namespace shardmark::test {
namespace {

using Actions = std::vector<Action>;
/// Makes one change at or behind place i of one section; false: there is none to make.
using Change = std::function<bool(Lane& lane, Actions& actions, std::size_t i)>;

/// Every single change of one kind, over all planners. Returns how many there were.
int accepts_all(Change const& change) {
  int changed = 0;
  for (NamedPlanner const& planner : all_planners()) {
    Schedule const coarse = planner.plan({3, 4, planner.chunks.back()});
    auto const [good, blocks] = lowered(coarse, 2, can_tie(coarse));
    for (std::size_t lane = 0; lane < good.lanes.size(); ++lane) {
      for (Section section : sections) {
        for (std::size_t i = 0; i < good.lanes[lane][section].size(); ++i) {
          Schedule other = good;
          if (!change(other.lanes[lane], other.lanes[lane][section], i)) continue;
          ++changed;
          EXPECT_NO_THROW(check(other, blocks))
              << planner.test_name << " lane " << lane << " at " << i << ": " << to_string(good.lanes[lane][section][i]);
        }
      }
    }
  }
  return changed;
}

bool sends(Lane const& lane, Action const& action) { return postings_of(lane, action.token).front().transfer == Transfer::send; }
bool collects(Lane const& lane, Action const& action) { return postings_of(lane, action.token).front().transfer == Transfer::collective; }

/// Whether two neighbours may change places.
bool commute(Lane const& lane, Action const& a, Action const& b) {
  auto const pair = [&](Do first, Do second) { return a.what == first && b.what == second; };
  if (pair(Do::wait, Do::wait)) return true;
  if (pair(Do::update, Do::update) || pair(Do::tie, Do::tie)) return true;
  if (pair(Do::fold, Do::backward) || pair(Do::fold, Do::backward_weight) || pair(Do::fold, Do::forward)) return true;
  if (pair(Do::post, Do::post)) {
    Posting const &first = postings_of(lane, a.token).front(), &second = postings_of(lane, b.token).front();
    bool const collective = collects(lane, a) || collects(lane, b);
    return !collective && (first.edge != second.edge || first.gradient != second.gradient || first.transfer != second.transfer);
  }
  return false;
}

TEST(Harmless, NeighboursThatDontDependChangePlaces) {
  EXPECT_GT(accepts_all([](Lane& lane, Actions& actions, std::size_t i) {
              if (i + 1 == actions.size() || !commute(lane, actions[i], actions[i + 1])) return false;
              std::swap(actions[i], actions[i + 1]);
              return true;
            }),
            300);
}

TEST(Harmless, SendsAreWaitedForLater) {
  EXPECT_GT(accepts_all([](Lane& lane, Actions& actions, std::size_t i) {
              if (actions[i].what != Do::wait || !sends(lane, actions[i])) return false;
              std::rotate(actions.begin() + std::ptrdiff_t(i), actions.begin() + std::ptrdiff_t(i) + 1, actions.end());
              return true;
            }),
            200);
}

TEST(Harmless, ReceivesArePostedEarlier) {
  EXPECT_GT(accepts_all([](Lane& lane, Actions& actions, std::size_t i) {
              if (actions[i].what != Do::post || sends(lane, actions[i]) || collects(lane, actions[i]) || i == 0) return false;
              if (actions[i - 1].what == Do::post || actions[i - 1].what == Do::wait) return false;
              std::swap(actions[i - 1], actions[i]);
              return true;
            }),
            50);
}

TEST(Harmless, TokensAreNamesOnly) {
  EXPECT_GT(accepts_all([](Lane& lane, Actions&, std::size_t i) {
              if (i > 0 || lane.postings.empty()) return false;
              for (Posting& posting : lane.postings) posting.token.v = 3 * posting.token.v + 2;
              for (Section section : sections) {
                for (Action& action : lane[section]) {
                  if (action.token.valid()) action.token.v = 3 * action.token.v + 2;
                }
              }
              return true;
            }),
            20);
}

/// Two posts that follow one another become one group, if one wait may stand for both.
TEST(Harmless, MessagesArePostedAsOneGroup) {
  EXPECT_GT(accepts_all([](Lane& lane, Actions& actions, std::size_t i) {
              if (i + 1 == actions.size() || actions[i].what != Do::post || actions[i + 1].what != Do::post) return false;
              if (!sends(lane, actions[i]) || sends(lane, actions[i + 1]) || collects(lane, actions[i + 1])) return false;
              Token const send = actions[i].token, receive = actions[i + 1].token;
              auto const is_wait = [](Token token) {
                return [token](Action const& action) { return action.what == Do::wait && action.token == token; };
              };
              auto const sent = std::ranges::find_if(actions, is_wait(send)), received = std::ranges::find_if(actions, is_wait(receive));
              // A group is complete when both are: only where the plan waits for both at one place.
              if (received + 1 != sent) return false;
              std::erase_if(actions, is_wait(receive));
              actions.erase(actions.begin() + std::ptrdiff_t(i) + 1);
              for (Posting& posting : lane.postings) posting.token = posting.token == receive ? send : posting.token;
              std::ranges::stable_sort(lane.postings, {}, &Posting::token);
              return true;
            }),
            5);
}

TEST(Harmless, OneMoreForwardMayBeRecomputed) {
  int changed = 0;
  for (NamedPlanner const& planner : all_planners()) {
    Schedule const coarse = planner.plan({3, 4, planner.chunks.back()});
    auto const blocks = chain(int(coarse.lane_of_chunk.size()));
    Schedule const plain = refine(coarse, blocks, even_partition(coarse, 1));
    for (int micro = 0; micro < 4; ++micro) {
      for (int block = 0; block < int(blocks.size()); ++block, ++changed) {
        KeepRule const one = [&](int, ChunkId b, MicroId m) {
          return b.v == block && m.v % plain.micros_per_window == micro % plain.micros_per_window ? Kept::input : Kept::stash;
        };
        EXPECT_NO_THROW(check(lower(recompute(plain, one), blocks, 0, Overlap::on), blocks)) << planner.test_name;
      }
    }
  }
  EXPECT_GT(changed, 100);
}

}  // namespace
}  // namespace shardmark::test
