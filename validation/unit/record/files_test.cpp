#include "record/files.hpp"

#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.hpp"
#include "record/reader.hpp"
#include "sample_record.hpp"
#include "temporary_folder.hpp"

namespace shardmark::record {
namespace {

class RecordFiles : public test::TemporaryFolder {};

/// A record of more than 8 KiB that names its writer.
std::string padded_line(int writer, int index) {
  Record record = test::sample_record();
  record.record_id = std::to_string(writer) + "-" + std::to_string(index);
  record.run.argv = {std::string(12000 + std::size_t(writer) * 1000, char('a' + writer))};
  return to_json_line(record);
}

TEST_F(RecordFiles, case_115_EightWritersAtOnceLoseAndMixNothing) {
  int const writers = 8, lines = 10;
  std::string const path = at("all.jsonl");
  std::vector<pid_t> children;
  for (int writer = 0; writer < writers; ++writer) {
    pid_t const child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      for (int i = 0; i < lines; ++i) append_line(path, padded_line(writer, i));
      _exit(0);
    }
    children.push_back(child);
  }
  for (pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT_EQ(status, 0);
  }
  RecordFile const file = read_records(path);
  EXPECT_TRUE(file.broken.empty());
  std::vector<int> next(writers, 0);
  for (StoredRecord const& record : file.records) {
    std::string const id = *text_at(record, "record_id");
    int const writer = id[0] - '0';
    EXPECT_EQ(record.json, padded_line(writer, next[std::size_t(writer)]++));
  }
  EXPECT_EQ(next, std::vector<int>(writers, lines));
}

TEST_F(RecordFiles, case_115_ALineThatWasLeftTornDoesNotSpoilTheNext) {
  std::string const path = at("all.jsonl");
  append_line(path, padded_line(0, 0));
  std::ofstream(path, std::ios::app) << padded_line(1, 0).substr(0, 5000);  // its writer was killed
  append_line(path, padded_line(2, 0));
  RecordFile const file = read_records(path);
  ASSERT_EQ(file.records.size(), 2u);
  EXPECT_EQ(*text_at(file.records[1], "record_id"), "2-0");
  ASSERT_EQ(file.broken.size(), 1u);
  EXPECT_EQ(file.broken[0].line, 2);
}

TEST_F(RecordFiles, case_115_AFullDiskIsAnErrorAndEarlierLinesStay) {
  std::string const mount_point = at("disk");
  std::filesystem::create_directory(mount_point);
  if (mount("tmpfs", mount_point.c_str(), "tmpfs", 0, "size=64k") != 0) GTEST_SKIP() << "no right to mount a small file system";
  std::string const path = mount_point + "/all.jsonl";
  int written = 0;
  std::string message;
  try {
    for (; written < 20; ++written) append_line(path, padded_line(0, written));
  } catch (Error const& error) {
    EXPECT_NE(error.code(), Exit::good);
    message = error.what();
  }
  RecordFile const file = read_records(path);
  std::string const before = text_of(path);
  EXPECT_THROW(replace_file(path, std::string(60000, 'x')), Error);
  EXPECT_EQ(text_of(path), before);
  umount(mount_point.c_str());
  EXPECT_GT(written, 0);
  EXPECT_LT(written, 20);
  EXPECT_NE(message.find("No space left"), std::string::npos) << message;
  EXPECT_EQ(int(file.records.size()), written);
  EXPECT_TRUE(file.broken.empty());
}

TEST_F(RecordFiles, AFullDeviceIsAnError) {
  try {
    append_line("/dev/full", "{}");
    FAIL() << "accepted";
  } catch (Error const& error) {
    EXPECT_EQ(error.code(), Exit::rank_failed);
    EXPECT_NE(std::string(error.what()).find("No space left"), std::string::npos) << error.what();
  }
}

TEST_F(RecordFiles, HeaderComesOnceAndFirst) {
  append_line_under(at("a.csv"), "x,y", "1,2");
  append_line_under(at("a.csv"), "x,y", "3,4");
  EXPECT_EQ(text_of(at("a.csv")), "x,y\n1,2\n3,4\n");
}

TEST_F(RecordFiles, ReplacingLeavesNothingBeside) {
  replace_file(at("record.json"), "old");
  replace_file(at("record.json"), "new");
  EXPECT_EQ(text_of(at("record.json")), "new");
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_), {}), 1);
  EXPECT_THROW(replace_file(at("none/record.json"), "x"), Error);
}

TEST_F(RecordFiles, UnwritablePathsAreRefusedBeforeWork) {
  require_appendable(at("new.jsonl"), "--json");
  EXPECT_TRUE(std::filesystem::exists(at("new.jsonl")));
  EXPECT_THROW(require_appendable(at("none/new.jsonl"), "--json"), BadRequest);
  EXPECT_THROW(require_appendable(folder_.native(), "--json"), BadRequest);
}

}  // namespace
}  // namespace shardmark::record
