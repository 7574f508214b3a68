// The pictures above the planners are what the planners plan.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "planners.hpp"

namespace shardmark::test {
namespace {

/// The rows "stage s | ..." of all pictures in a planner's comments, in order; what stands two spaces behind a row is a remark.
std::vector<std::string> drawn_in(std::string const& file) {
  char const* const folder = std::getenv("SHARDMARK_PLANNERS");
  if (folder == nullptr) {
    ADD_FAILURE() << "SHARDMARK_PLANNERS names the folder of the planners' sources; ctest sets it";
    return {};
  }
  std::ifstream in(std::string(folder) + "/" + file);
  EXPECT_TRUE(in) << file;
  std::vector<std::string> rows;
  for (std::string line; std::getline(in, line);) {
    auto const at = line.find("stage ");
    if (!line.starts_with("//   stage ") || line.find('|') == std::string::npos) continue;
    line = line.substr(at);
    line = line.substr(0, line.rfind("U") + 1);
    rows.push_back(line);
  }
  return rows;
}

std::vector<std::string> rendered(std::vector<Schedule> const& schedules) {
  std::vector<std::string> rows;
  for (Schedule const& schedule : schedules) {
    std::istringstream lines(render(schedule, 1000));
    for (std::string line; std::getline(lines, line);) {
      if (line.starts_with("stage")) rows.push_back(line);
    }
  }
  return rows;
}

TEST(Pictures, StandAboveTheirPlanners) {
  EXPECT_EQ(drawn_in("plan_sequential.cpp"), rendered({plan_sequential("serial", 3)}));
  EXPECT_EQ(drawn_in("plan_model_parallel.cpp"), rendered({plan_model_parallel({3, 2})}));
  EXPECT_EQ(drawn_in("plan_gpipe.cpp"), rendered({plan_gpipe({4, 4})}));
  EXPECT_EQ(drawn_in("plan_1f1b.cpp"), rendered({plan_1f1b({3, 4})}));
  EXPECT_EQ(drawn_in("plan_interleaved.cpp"), rendered({plan_interleaved({2, 4, 2})}));
  EXPECT_EQ(drawn_in("plan_zero_bubble.cpp"),
            rendered({plan_zero_bubble({3, 6}, ZeroBubble::h1), plan_zero_bubble({3, 6}, ZeroBubble::h2)}));
  EXPECT_EQ(drawn_in("plan_vee.cpp"), rendered({plan_zero_bubble({2, 4, 2}, ZeroBubble::v)}));
  EXPECT_EQ(drawn_in("plan_pipedream.cpp"), rendered({plan_pipedream({3, 1}, Delay::stash), plan_joint({3, 1}, Delay::vertical)}));
}

}  // namespace
}  // namespace shardmark::test
