#include "record/run_folder.hpp"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "base/error.hpp"
#include "sample_record.hpp"
#include "temporary_folder.hpp"

namespace shardmark::record {
namespace {

using nlohmann::json;

/// Works inside a folder of its own, since default names are relative.
class RunFolders : public test::TemporaryFolder {
 protected:
  void SetUp() override {
    TemporaryFolder::SetUp();
    before_ = std::filesystem::current_path();
    std::filesystem::current_path(folder_);
  }
  void TearDown() override {
    std::filesystem::current_path(before_);
    TemporaryFolder::TearDown();
  }
  static json record_in(RunFolder const& folder) { return json::parse(text_of(folder.file("record.json"))); }

  RunName const name_{"48211", "0", "ddp", "20261204T093107Z"};
  std::filesystem::path before_;
};

TEST_F(RunFolders, DefaultNamesNeverCollide) {
  RunFolder const first("", name_), second("", name_);
  EXPECT_EQ(first.path(), "runs/48211-0-ddp-20261204T093107Z");
  EXPECT_EQ(second.path(), "runs/48211-0-ddp-20261204T093107Z-2");
}

TEST_F(RunFolders, AnExistingOutIsRefused) {
  RunFolder const folder("a/b/out", name_);
  for (char const* out : {"a/b/out", "a/b/out/", "a"}) {
    try {
      RunFolder const again(out, name_);
      FAIL() << "written over " << out;
    } catch (BadRequest const& error) {
      EXPECT_THAT(error.what(), testing::HasSubstr("never written over"));
    }
  }
  std::ofstream("file") << "x";
  EXPECT_THROW(RunFolder("file", name_), BadRequest);
  EXPECT_THROW(RunFolder("file/out", name_), BadRequest);
}

TEST_F(RunFolders, StateGoesFromRunningToCompleted) {
  RunFolder folder("out", name_);
  Record record = test::sample_record();
  record.run.state = State::running;
  folder.write(record);
  EXPECT_EQ(record_in(folder)["run"]["state"], "running");
  record.run.state = State::completed;
  folder.write(record);
  EXPECT_EQ(record_in(folder)["run"]["state"], "completed");
  EXPECT_FALSE(folder.end(State::failed, 3)) << "a run ends once";
  EXPECT_EQ(record_in(folder)["run"]["state"], "completed");
}

TEST_F(RunFolders, case_113_AnEarlyEndLeavesAValidRecord) {
  RunFolder folder("out", name_);
  EXPECT_FALSE(folder.end(State::failed, 3)) << "there is no record yet";
  Record record = test::sample_record();
  record.run.state = State::running;
  record.run.ended = std::nullopt;
  folder.write(record);
  ASSERT_TRUE(folder.end(State::timeout, 3));
  json const written = record_in(folder);
  EXPECT_EQ(written["run"]["state"], "timeout");
  EXPECT_EQ(written["run"]["exit_code"], 3);
  EXPECT_TRUE(written["run"]["ended"].is_string());
  EXPECT_EQ(written["official"], false);
  EXPECT_THAT(written["unofficial"].dump(), testing::HasSubstr("not_completed"));
  EXPECT_FALSE(folder.end(State::failed, 3)) << "the first end counts";
}

TEST_F(RunFolders, LogKeepsItsLines) {
  RunFolder folder("out", name_);
  folder.log("first");
  folder.log("second");
  EXPECT_EQ(text_of(folder.file("log.txt")), "first\nsecond\n");
}

TEST_F(RunFolders, NamesComeFromTheJob) {
  RunName const name = run_name("serial");
  EXPECT_EQ(name.program, "serial");
  EXPECT_THAT(name.time, testing::MatchesRegex("[0-9]{8}T[0-9]{6}Z"));
  EXPECT_FALSE(name.job.empty() || name.step.empty());
}

}  // namespace
}  // namespace shardmark::record
