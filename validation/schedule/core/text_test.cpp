// Schedules as text: what is written is read back, and no text breaks the reader.

#include "schedule/text.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <random>

#include "base/error.hpp"
#include "planners.hpp"

namespace shardmark::test {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST(Text, EveryPlannedScheduleComesBack) {
  for (NamedPlanner const& planner : all_planners()) {
    over_shapes(planner, [&](PipelineShape shape) {
      Schedule schedule = planner.plan(shape);
      EXPECT_EQ(parse_schedule(to_text(schedule)), schedule) << planner.test_name << shape.stages << shape.micros;
      schedule.sum = {Fold::loop, Fold::tree, Inside::replicas};
      EXPECT_EQ(parse_schedule(to_text(schedule)), schedule);
    });
  }
  Schedule const twin = plan_sequential("serial", SumShape{3, 4});
  EXPECT_EQ(parse_schedule(to_text(twin)), twin);
  Schedule const recomputing = with_recomputation(plan_gpipe({3, 4}));
  EXPECT_EQ(parse_schedule(to_text(recomputing)), recomputing);
}

constexpr char const* by_hand = R"(# two stages, one micro-batch
schedule my-own
chunks 0 1
micros 1
lane 0
  forward chunk 0 micro 0 version 0   # comments may follow
  backward chunk 0 micro 0 version 0
reduce
update version 1
lane 1
body
forward chunk 1 micro 0 version 0
backward chunk 1 micro 0 version 0
reduce
update version 1)";

/// `by_hand` with one piece replaced.
std::string changed(std::string const& from, std::string const& to) {
  std::string text = by_hand;
  auto const at = text.find(from);
  EXPECT_NE(at, std::string::npos) << from;
  return text.replace(at, from.size(), to);
}

TEST(Text, ReadsWhatAPersonWrites) {
  Schedule const schedule = parse_schedule(by_hand);
  Schedule planned = plan_gpipe({2, 1});
  planned.name = "my-own";
  EXPECT_EQ(schedule, planned);
  EXPECT_NO_THROW(check(schedule, {}));
  EXPECT_EQ(parse_schedule(changed("  backward chunk 0 micro 0 version 0", "\tbackward\tchunk 0 micro  0 version 0 \r")), planned);
}

TEST(Text, LoweredSchedulesNameTheirMessages) {
  auto const [schedule, blocks] = lowered(plan_1f1b({2, 2}), 1);
  EXPECT_THAT(to_text(schedule), HasSubstr("  post chunk 1 micro 1 token 2: send activation edge 1 micro 1 to lane 1\n"));
}

std::string refusal(std::string const& text) {
  try {
    parse_schedule(text, "my.schedule");
  } catch (BadRequest const& problem) {
    return problem.what();
  }
  return "read";
}

TEST(Text, MessagesNameLineAndColumn) {
  EXPECT_EQ(refusal(changed("forward chunk 0", "forwards chunk 0")),
            "my.schedule line 6, column 3: 'forwards' is no action, section or lane");
  EXPECT_EQ(refusal(changed("chunk 0 micro 0", "chunk x micro 0")), "my.schedule line 6, column 17: 'x' is no number from 0 to 4096");
  EXPECT_EQ(refusal(changed("chunk 0 micro 0", "micro 0 chunk 0")), "my.schedule line 6, column 11: 'micro' where 'chunk' should stand");
  EXPECT_EQ(refusal(changed("micro 0 version 0 ", "micro 0 version")),
            "my.schedule line 6, column 34: the line ends where a number should stand");
  EXPECT_EQ(refusal(changed("reduce", "reduce now")), "my.schedule line 8, column 8: 'now' is too much");
  EXPECT_EQ(refusal(changed("lane 1", "lane 2")), "my.schedule line 10, column 6: lane 1 comes next");
  EXPECT_EQ(refusal(changed("reduce", "decide version 1")),
            "my.schedule line 8, column 1: 'decide' is inserted by the program; the coarse form has none");
  EXPECT_THAT(refusal(changed("chunks 0 1", "chunks 0 2")), HasSubstr("a chunk is on lane 2, but there are 2 lanes"));
  EXPECT_THAT(refusal(changed("micros 1\n", "")), HasSubstr("no line 'micros NUMBER'"));
  EXPECT_THAT(refusal(changed("lane 0\n", "sum tree bush micros\nlane 0\n")),
              HasSubstr("line 5, column 10: 'bush' where loop or tree should stand"));
  EXPECT_THAT(refusal(changed("my-own", "../etc")), HasSubstr("a name has up to 64 letters"));
  EXPECT_THAT(refusal(""), StartsWith("my.schedule line 1, column 1: no line 'schedule NAME'"));
  EXPECT_THAT(refusal("reduce"), HasSubstr("an action outside of a lane"));
}

TEST(Text, AbsurdSizesAreRefusedBeforeAnythingIsAllocated) {
  EXPECT_THAT(refusal(changed("micros 1", "micros 99999999999999999999")), HasSubstr("no number from 1 to 65536"));
  EXPECT_THAT(refusal(changed("micros 1", "micros 2147483647")), HasSubstr("no number from 1 to 65536"));
  EXPECT_THAT(refusal(changed("version 1", "version -2000000")), HasSubstr("no number from"));
  EXPECT_THAT(refusal(changed("micros 1", "micros 65536\nleaves 65536 65536")), HasSubstr("too many leaves"));
  std::string chunks = "schedule large\nmicros 65536\nchunks";
  for (int i = 0; i < 4096; ++i) chunks += " 0";
  EXPECT_THAT(refusal(chunks + "\nlane 0\n"), HasSubstr("larger than can be checked"));
  EXPECT_THAT(refusal(chunks + " 0\nlane 0\n"), HasSubstr("more than 4096 chunks"));
}

/// Reads the text; what comes back is checked. Returns whether it was refused.
bool refused(std::string const& text) {
  try {
    check(parse_schedule(text), {}, 2);
    return false;
  } catch (BadRequest const&) {
    return true;
  } catch (BadSchedule const&) {
    return true;
  }
}

TEST(Text, RandomChangesNeverBreakTheReader) {
  std::mt19937 random(3);
  auto const below = [&](std::size_t n) { return std::uniform_int_distribution<std::size_t>(0, n - 1)(random); };
  std::string const texts[] = {by_hand, to_text(plan_1f1b({3, 4})), to_text(plan_pipedream({3, 1}, Delay::stash)),
                               to_text(plan_zero_bubble({2, 3, 2}, ZeroBubble::v))};
  int refusals = 0;
  for (int trial = 0; trial < 20000; ++trial) {
    std::string text = texts[below(4)];
    for (std::size_t changes = 1 + below(3); changes > 0 && !text.empty(); --changes) {
      std::size_t const at = below(text.size()), length = 1 + below(12);
      switch (below(5)) {
        case 0:
          text[at] = char(below(256));
          break;
        case 1:
          text.erase(at, length);
          break;
        case 2:
          text.insert(at, text.substr(below(text.size()), length));
          break;
        case 3:
          text.insert(at, std::to_string(below(1u << 31)));
          break;
        default:
          text.resize(at);
      }
    }
    refusals += refused(text) ? 1 : 0;
  }
  EXPECT_GT(refusals, 15000) << "most changes are faults; some are in comments, names or spaces";
  EXPECT_LT(refusals, 20000);
}

}  // namespace
}  // namespace shardmark::test
